//! What was chosen, and where it is written.

use serde::Serialize;

use crate::text::Span;

/// A choice of a GPU, or of a way to get one, as a text makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Where the words stand that would have to change.
    #[serde(flatten)]
    pub span: Span,
    /// What they are.
    #[serde(flatten)]
    pub what: What,
    /// In which role: `az vm create --size`, `resources.requests.gpu`; empty for a mere mention.
    pub by: String,
    /// The service it is chosen for, where the text tells.
    pub service: Option<Service>,
    /// The region, as the text spells it.
    pub region: Option<String>,
    /// Whether it is asked for at low priority or as Spot.
    pub low_priority: bool,
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum What {
    /// A virtual machine size.
    Size {
        /// As the text spells it.
        name: String,
    },
    /// GPUs of a container instance.
    ContainerGpu {
        /// K80, P100 or V100.
        sku: Option<String>,
        /// How many.
        count: Option<u32>,
        /// Whether options of `az container create` ask for it, which has none for GPUs.
        by_option: bool,
    },
    /// Any size with a GPU of this name.
    Accelerator {
        /// The GPU, as the text spells it.
        name: String,
        /// How many.
        count: u32,
    },
    /// A client library, by one of its names.
    Interface {
        /// Which.
        interface: Interface,
        /// The name that was found.
        name: String,
    },
    /// Low-priority nodes of Batch.
    LowPriorityNodes,
    /// A tag or option that leaves the GPU driver of AKS nodes out.
    SkipDriver,
    /// A machine image without its SKU and version.
    ImageReference {
        /// As the text spells it.
        reference: String,
    },
}

/// Client libraries that have ended, or whose names have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// `azureml.core`, `HyperDrive` and `az ml computetarget`.
    MachineLearningV1,
    /// `azure-batch` up to version 14.
    BatchBefore15,
}

/// The services a size can be chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Virtual machines and scale sets.
    Vm,
    /// Container Instances.
    Aci,
    /// Machine Learning.
    Ml,
    /// Batch.
    Batch,
    /// Kubernetes.
    Aks,
}

impl Service {
    /// Its id in the table of services.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Aci => "aci",
            Self::Ml => "ml",
            Self::Batch => "batch",
            Self::Aks => "aks",
        }
    }
}

impl Choice {
    /// The choice in the words of the text.
    pub fn words(&self) -> String {
        match &self.what {
            What::ContainerGpu { sku, count, .. } => match (sku, count) {
                (Some(sku), Some(count)) => format!("{count} x {sku}"),
                (Some(sku), None) => sku.clone(),
                (None, Some(count)) => format!("{count} GPU{}", if *count == 1 { "" } else { "s" }),
                (None, None) => "a GPU".to_owned(),
            },
            What::Accelerator { name, count } => format!("{count} x {name}"),
            What::Size { name } | What::Interface { name, .. } => name.clone(),
            What::LowPriorityNodes => "low-priority nodes".to_owned(),
            What::SkipDriver => "--skip-gpu-driver-install".to_owned(),
            What::ImageReference { reference } => reference.clone(),
        }
    }
}
