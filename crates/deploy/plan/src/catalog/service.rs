//! The services of Azure, one kind for each way of billing and starting.

use schemars::JsonSchema;
use serde::Serialize;

use crate::workload::Management;

/// A way to run a container on Azure. Variants are in the order that breaks ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceKind {
    ContainerApps,
    /// Serverless compute of Machine Learning: jobs only.
    MlServerless,
    Batch,
    MlCluster,
    /// A managed online endpoint of Machine Learning: serving only.
    MlEndpoint,
    Aks,
    ContainerAppsDedicated,
    Vm,
    /// Container Instances: no GPU since 2025-07-14.
    Aci,
}

impl ServiceKind {
    pub const ALL: [Self; 9] = [
        Self::ContainerApps,
        Self::MlServerless,
        Self::Batch,
        Self::MlCluster,
        Self::MlEndpoint,
        Self::Aks,
        Self::ContainerAppsDedicated,
        Self::Vm,
        Self::Aci,
    ];

    /// Its index in [`Self::ALL`].
    pub(crate) const fn index(self) -> u8 {
        self as u8
    }

    /// Whether it runs on whole virtual machine sizes.
    pub(crate) const fn uses_vm_sizes(self) -> bool {
        !matches!(self, Self::ContainerApps | Self::ContainerAppsDedicated | Self::Aci)
    }

    pub const fn has_spot(self) -> bool {
        matches!(self, Self::Vm | Self::Aks | Self::Batch | Self::MlCluster | Self::MlServerless)
    }

    /// Whether it runs jobs; Container Instances do with the restart policy Never or `OnFailure`.
    pub const fn runs_jobs(self) -> bool {
        !matches!(self, Self::MlEndpoint)
    }

    /// Whether it can serve requests continuously.
    pub const fn serves(self) -> bool {
        matches!(
            self,
            Self::Vm
                | Self::Aks
                | Self::MlEndpoint
                | Self::ContainerApps
                | Self::ContainerAppsDedicated
                | Self::Aci
        )
    }

    /// Whether instances can work together: replicas of Container Apps cannot address each other.
    pub const fn joins_instances(self) -> bool {
        !matches!(self, Self::ContainerApps | Self::ContainerAppsDedicated | Self::Aci)
    }

    /// Whether `cudock up` deploys to it.
    pub const fn is_deployable(self) -> bool {
        !matches!(self, Self::Aks)
    }

    /// Whether the OS disk is billed separately.
    pub(crate) const fn bills_disk(self) -> bool {
        matches!(self, Self::Vm | Self::Aks | Self::Batch)
    }

    /// Whether it scales with the load, hour by hour.
    pub(crate) const fn autoscales(self) -> bool {
        matches!(self, Self::Aks | Self::MlEndpoint | Self::ContainerApps)
    }

    /// Its name in files and flags.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Aks => "aks",
            Self::Batch => "batch",
            Self::MlCluster => "ml-cluster",
            Self::MlServerless => "ml-serverless",
            Self::MlEndpoint => "ml-endpoint",
            Self::ContainerApps => "container-apps",
            Self::ContainerAppsDedicated => "container-apps-dedicated",
            Self::Aci => "aci",
        }
    }

    /// The service that it belongs to in the tables.
    pub const fn table_id(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Aks => "aks",
            Self::Batch => "batch",
            Self::MlCluster | Self::MlServerless | Self::MlEndpoint => "ml",
            Self::ContainerApps | Self::ContainerAppsDedicated => "container-apps",
            Self::Aci => "aci",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Vm => "Virtual Machine",
            Self::Aks => "Kubernetes Service",
            Self::Batch => "Batch",
            Self::MlCluster => "Machine Learning cluster",
            Self::MlServerless => "Machine Learning serverless",
            Self::MlEndpoint => "Machine Learning endpoint",
            Self::ContainerApps => "Container Apps serverless",
            Self::ContainerAppsDedicated => "Container Apps dedicated",
            Self::Aci => "Container Instances",
        }
    }

    pub const fn management(self) -> Management {
        match self {
            Self::Vm | Self::Aks => Management::Own,
            Self::Batch | Self::MlCluster | Self::MlEndpoint | Self::ContainerAppsDedicated => {
                Management::Managed
            }
            Self::MlServerless | Self::ContainerApps | Self::Aci => Management::Serverless,
        }
    }

    /// The kinds that an id stands for: `ml` and other table ids name several.
    pub fn named(id: &str) -> Vec<Self> {
        Self::ALL.into_iter().filter(|kind| kind.id() == id || kind.table_id() == id).collect()
    }
}
