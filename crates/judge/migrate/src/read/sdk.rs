//! Finds names of client libraries that are retired or renamed.

use super::collector::ChoiceCollector;
use super::names::{is_name_byte, name_length};
use crate::choice::{Choice, ChoiceKind, Interface};
use cudock_facts::services::AzureService;

/// A name that identifies a library.
struct SdkMarker {
    word: &'static str,
    interface: Interface,
    service: AzureService,
    /// Whether the name may continue: `models.PoolAddParameter`.
    begins: bool,
    /// Text that must be elsewhere in the file, since the name alone is ambiguous.
    only_with: Option<&'static str>,
}

const fn machine_learning(word: &'static str) -> SdkMarker {
    let (interface, service) = (Interface::MachineLearningV1, AzureService::Ml);
    SdkMarker { word, interface, service, begins: false, only_with: None }
}

const fn batch(word: &'static str, begins: bool, only_with: Option<&'static str>) -> SdkMarker {
    SdkMarker { word, interface: Interface::BatchBefore15, service: AzureService::Batch, begins, only_with }
}

/// The first name of each group is reported.
const SDK_MARKERS: &[&[SdkMarker]] = &[
    &[
        machine_learning("azureml.core"),
        machine_learning("azureml.train"),
        machine_learning("azureml.pipeline"),
        machine_learning("azureml-core"),
        machine_learning("azureml-sdk"),
    ],
    &[machine_learning("HyperDriveConfig"), machine_learning("HyperDriveRunConfig")],
    &[batch("BatchServiceClient", false, None)],
    &[batch("models.Pool", true, Some("azure.batch"))],
];

pub(super) fn read(text: &str, collector: &mut ChoiceCollector<'_>) {
    for group in SDK_MARKERS {
        let first = group
            .iter()
            .filter_map(|marker| Some((marker.find(text, collector)?, marker)))
            .min_by_key(|(at, _)| *at);
        let Some((start, marker)) = first else { continue };
        let rest = text.get(start + marker.word.len()..).unwrap_or_default();
        let more = if marker.begins { name_length(rest) } else { 0 };
        let end = start + marker.word.len() + more;
        let name = text.get(start..end).unwrap_or(marker.word).to_owned();
        let kind = ChoiceKind::Interface { interface: marker.interface, name };
        collector.add(Choice { service: Some(marker.service), ..Choice::at(start, end, kind) });
    }
}

impl SdkMarker {
    fn find(&self, text: &str, collector: &ChoiceCollector<'_>) -> Option<usize> {
        if self.only_with.is_some_and(|other| !text.contains(other)) {
            return None;
        }
        let bytes = text.as_bytes();
        text.match_indices(self.word).map(|(start, _)| start).find(|start| {
            let before = start.checked_sub(1).and_then(|index| bytes.get(index));
            let after = bytes.get(start + self.word.len());
            // `batchmodels.Pool` is `models.Pool` under another name.
            let begins = self.begins || before.is_none_or(|byte| !is_name_byte(*byte) && *byte != b'-');
            let ends = self.begins || after.is_none_or(|byte| !is_name_byte(*byte) && *byte != b'-');
            begins && ends && !collector.in_comment(*start)
        })
    }
}
