//! Choices of GPUs in a text, with their spans.

use cudock_facts::services::AzureService;
use schemars::JsonSchema;
use serde::Serialize;

use crate::text::ChoiceSpan;

/// A choice of a GPU, or of something that GPUs depend on, in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Choice {
    /// The text to change.
    #[serde(flatten)]
    pub span: ChoiceSpan,
    #[serde(flatten)]
    pub kind: ChoiceKind,
    /// Its role: `az vm create --size`, `resources.requests.gpu`; empty for a mere mention.
    #[serde(rename = "by")]
    pub role: String,
    /// The service it is chosen for, if known.
    pub service: Option<AzureService>,
    /// The region, as written.
    pub region: Option<String>,
    /// Whether it is requested at low priority or as Spot.
    pub low_priority: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum ChoiceKind {
    /// A virtual machine size.
    Size {
        name: String,
    },
    ContainerGpu {
        /// K80, P100 or V100.
        sku: Option<String>,
        count: Option<u32>,
        /// Whether it is an option of `az container create`, which has none for GPUs.
        by_option: bool,
    },
    /// Any size with a GPU of this name.
    Accelerator {
        /// The GPU, as written.
        name: String,
        count: u32,
    },
    /// A client library, by one of its names.
    Interface {
        interface: Interface,
        name: String,
    },
    LowPriorityNodes,
    /// A tag or option that skips the GPU driver of AKS nodes.
    SkipDriver,
    /// A machine image without its SKU and version.
    ImageReference {
        reference: String,
    },
}

/// Client libraries that are retired or renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// `azureml.core`, `HyperDrive` and `az ml computetarget`.
    MachineLearningV1,
    /// `azure-batch` up to version 14.
    BatchBefore15,
}

impl Choice {
    /// A choice of the bytes from `start` to `end`; lines and columns are filled in later.
    pub(crate) fn at(start: usize, end: usize, kind: ChoiceKind) -> Self {
        let span = ChoiceSpan { start, end, ..ChoiceSpan::default() };
        Self { span, kind, role: String::new(), service: None, region: None, low_priority: false }
    }

    /// A short text for the choice.
    pub fn describe(&self) -> String {
        match &self.kind {
            ChoiceKind::ContainerGpu { sku, count, .. } => match (sku, count) {
                (Some(sku), Some(count)) => format!("{count} x {sku}"),
                (Some(sku), None) => sku.clone(),
                (None, Some(count)) => format!("{count} GPU{}", if *count == 1 { "" } else { "s" }),
                (None, None) => "a GPU".to_owned(),
            },
            ChoiceKind::Accelerator { name, count } => format!("{count} x {name}"),
            ChoiceKind::Size { name } | ChoiceKind::Interface { name, .. } => name.clone(),
            ChoiceKind::LowPriorityNodes => "low-priority nodes".to_owned(),
            ChoiceKind::SkipDriver => "--skip-gpu-driver-install".to_owned(),
            ChoiceKind::ImageReference { reference } => reference.clone(),
        }
    }
}
