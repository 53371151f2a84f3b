//! `[deploy]`: where the workload may run.

use std::borrow::Cow;

use cudock_facts::services::{AzureService, Management};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::one_or_many;
use super::spot::SpotChoice;
use crate::{TimeSpan, json_schema};

/// Where the workload may run. `cudock plan` compares everything that is allowed; `target` is the choice.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Deploy {
    /// The chosen target.
    pub target: DeployTarget,
    /// Time after which it is deleted.
    pub ttl: Option<TimeSpan>,
    /// Allowed regions: `["westeurope", "swedencentral"]`; all if absent.
    #[serde(deserialize_with = "one_or_many::names")]
    #[schemars(schema_with = "json_schema::names")]
    pub regions: Vec<String>,
    /// Allowed services: `["vm", "batch", "ml", "container-apps"]`; all if absent.
    #[serde(deserialize_with = "one_or_many::names")]
    #[schemars(schema_with = "json_schema::names")]
    pub services: Vec<String>,
    /// Allowed sizes: `["Standard_NC4as_T4_v3"]`; all if absent.
    #[serde(deserialize_with = "one_or_many::names")]
    #[schemars(schema_with = "json_schema::names")]
    pub sizes: Vec<String>,
    /// Whether it may be evicted: `true`, `false`, `"only"`, or a table with the cost of an eviction.
    #[schemars(schema_with = "json_schema::spot")]
    pub spot: Option<SpotChoice>,
    /// Most US dollars: for a whole job, or for a month of a service.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub budget: Option<f64>,
    /// How much the service must manage.
    pub management: Option<Management>,
}

/// A place that `cudock up --on NAME` deploys to: a service, and what exists there.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedTarget {
    pub service: DeployTarget,
    /// Allowed regions; those of `[deploy]` if absent.
    #[serde(default)]
    pub regions: Vec<String>,
    /// Allowed sizes; those of `[deploy]` if absent.
    #[serde(default)]
    pub sizes: Vec<String>,
    /// Machine Learning workspace as `GROUP/NAME`.
    pub workspace: Option<String>,
    /// Cluster in the workspace, for jobs.
    pub cluster: Option<String>,
    /// Batch account as `GROUP/NAME`.
    pub batch_account: Option<String>,
    /// Pool in the account.
    pub pool: Option<String>,
    /// Container Apps environment as `GROUP/NAME`.
    pub environment: Option<String>,
    /// Resource id of the identity that pulls the image.
    pub pull_identity: Option<String>,
    /// Resource id of the identity that deletes deployments.
    pub reaper_identity: Option<String>,
}

/// Where a workload runs: here, or on a service of Azure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeployTarget {
    /// This machine.
    #[default]
    Local,
    Service(AzureService),
}

const LOCAL: &str = "local";

impl DeployTarget {
    /// The names in files.
    const NAMES: &[&str] = &[LOCAL, "vm", "batch", "ml", "container-apps", "aci"];
}

impl<'de> Deserialize<'de> for DeployTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        match AzureService::named(&name).filter(|service| service.is_deployable()) {
            Some(service) => Ok(Self::Service(service)),
            None if name == LOCAL => Ok(Self::Local),
            None => Err(D::Error::unknown_variant(&name, Self::NAMES)),
        }
    }
}

impl JsonSchema for DeployTarget {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "DeployTarget".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string", "enum": Self::NAMES })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_this_machine_and_the_services_that_are_deployed_to() {
        let services = AzureService::deployable().map(AzureService::id);
        assert!(std::iter::once(LOCAL).chain(services).eq(DeployTarget::NAMES.iter().copied()));
    }
}
