//! Names of client libraries that have ended, or have other names now.

use super::draft::{Draft, Found};
use super::names::is_name_byte;
use crate::choice::{Interface, Service, What};

/// A name that gives a library away.
struct Sign {
    word: &'static str,
    interface: Interface,
    service: Service,
    /// The name may go on: `models.PoolAddParameter`.
    begins: bool,
    /// Without this elsewhere in the text, the name could be anybody's.
    only_with: Option<&'static str>,
}

const fn machine_learning(word: &'static str) -> Sign {
    Sign {
        word,
        interface: Interface::MachineLearningV1,
        service: Service::Ml,
        begins: false,
        only_with: None,
    }
}

const fn batch(word: &'static str, begins: bool, only_with: Option<&'static str>) -> Sign {
    Sign { word, interface: Interface::BatchBefore15, service: Service::Batch, begins, only_with }
}

/// Of each group the first name that is found is told.
const SIGNS: &[&[Sign]] = &[
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

/// Finds the first of each.
pub(super) fn read(text: &str, draft: &mut Draft<'_>) {
    for group in SIGNS {
        let first =
            group.iter().filter_map(|sign| Some((sign.find(text, draft)?, sign))).min_by_key(|(at, _)| *at);
        let Some((start, sign)) = first else { continue };
        let rest = text.get(start + sign.word.len()..).unwrap_or_default();
        let more = if sign.begins { rest.bytes().take_while(|byte| is_name_byte(*byte)).count() } else { 0 };
        let end = start + sign.word.len() + more;
        let name = text.get(start..end).unwrap_or(sign.word).to_owned();
        let what = What::Interface { interface: sign.interface, name };
        draft.add(Found { service: Some(sign.service), ..Found::new(start, end, what) });
    }
}

impl Sign {
    fn find(&self, text: &str, draft: &Draft<'_>) -> Option<usize> {
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
            begins && ends && !draft.in_comment(*start)
        })
    }
}
