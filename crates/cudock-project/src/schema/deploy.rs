//! `[deploy]`: where it runs, and what its owner wants of the place.

use serde::Deserialize;

use super::spot::SpotChoice;
use super::words;
use crate::Span;

/// Where it runs. `cudock plan` compares all places; `target` is the one that was chosen.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Deploy {
    /// The place.
    pub target: DeployTarget,
    /// When it is deleted at the latest.
    pub ttl: Option<Span>,
    /// Regions allowed: `["westeurope", "swedencentral"]`; all if left out.
    #[serde(deserialize_with = "words::one_or_more")]
    pub regions: Vec<String>,
    /// Services allowed: `["vm", "batch", "ml", "container-apps"]`; all if left out.
    #[serde(deserialize_with = "words::one_or_more")]
    pub services: Vec<String>,
    /// Sizes allowed: `["Standard_NC4as_T4_v3"]`; all if left out.
    #[serde(deserialize_with = "words::one_or_more")]
    pub sizes: Vec<String>,
    /// Whether it may be evicted: `true`, `false`, `"only"`, or how it bears that.
    pub spot: Option<SpotChoice>,
    /// Most US dollars: for the whole of a job, for a month of serving.
    pub budget: Option<f64>,
    /// How much the service must do by itself.
    pub management: Option<ManagementWanted>,
}

/// Places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeployTarget {
    /// This machine.
    #[default]
    Local,
    /// Azure Container Instances.
    Aci,
    /// Azure Container Apps.
    ContainerApps,
    /// Azure Machine Learning.
    Ml,
    /// Azure Batch.
    Batch,
    /// A virtual machine.
    Vm,
}

/// How much a service must do by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ManagementWanted {
    /// Machines of one's own will do.
    Own,
    /// Machines are made, mended and removed by the service.
    Managed,
    /// There are no machines to see.
    Serverless,
}
