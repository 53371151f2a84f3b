//! The services a workload can be placed on, as kinds that are billed and started alike.

use serde::Serialize;

use crate::workload::Management;

/// A way of running a container on Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceKind {
    /// A virtual machine of one's own.
    Vm,
    /// A node pool of a Kubernetes cluster.
    Aks,
    /// A pool of Batch.
    Batch,
    /// A compute cluster of Machine Learning.
    MlCluster,
    /// Serverless compute of Machine Learning: jobs only.
    MlServerless,
    /// A managed online endpoint of Machine Learning: serving only.
    MlEndpoint,
    /// Container Apps, consumption plan.
    ContainerApps,
    /// Container Apps, dedicated workload profile.
    ContainerAppsDedicated,
    /// Container Instances: no GPU since 2025-07-14.
    Aci,
}

impl ServiceKind {
    /// All, in the order reports break ties by.
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

    /// Its place in [`Self::ALL`].
    pub(crate) const fn place(self) -> u8 {
        match self {
            Self::ContainerApps => 0,
            Self::MlServerless => 1,
            Self::Batch => 2,
            Self::MlCluster => 3,
            Self::MlEndpoint => 4,
            Self::Aks => 5,
            Self::ContainerAppsDedicated => 6,
            Self::Vm => 7,
            Self::Aci => 8,
        }
    }

    /// Whether it places whole virtual machine sizes.
    pub(crate) const fn places_sizes(self) -> bool {
        !matches!(self, Self::ContainerApps | Self::ContainerAppsDedicated | Self::Aci)
    }

    /// Whether it gives what others may take away.
    pub const fn has_spot(self) -> bool {
        matches!(self, Self::Vm | Self::Aks | Self::Batch | Self::MlCluster | Self::MlServerless)
    }

    /// Whether it runs work that ends; Container Instances do with the restart policy Never or `OnFailure`.
    pub const fn runs_jobs(self) -> bool {
        !matches!(self, Self::MlEndpoint)
    }

    /// Whether it answers requests for months.
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

    /// Whether instances can be made to work together: replicas of Container Apps do not find each other.
    pub const fn joins_instances(self) -> bool {
        !matches!(self, Self::ContainerApps | Self::ContainerAppsDedicated | Self::Aci)
    }

    /// Whether the disk that a machine boots from is paid for apart.
    pub(crate) const fn bills_disk(self) -> bool {
        matches!(self, Self::Vm | Self::Aks | Self::Batch)
    }

    /// Whether instances follow the load, hour by hour.
    pub(crate) const fn follows_load(self) -> bool {
        matches!(self, Self::Aks | Self::MlEndpoint | Self::ContainerApps)
    }

    /// What files and flags call it.
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

    /// The service in the tables that it is part of.
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

    /// What people call it.
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

    /// How much it does by itself.
    pub const fn management(self) -> Management {
        match self {
            Self::Vm | Self::Aks => Management::Own,
            Self::Batch | Self::MlCluster | Self::MlEndpoint | Self::ContainerAppsDedicated => {
                Management::Managed
            }
            Self::MlServerless | Self::ContainerApps | Self::Aci => Management::Serverless,
        }
    }

    /// The kind an id names; `ml` and other table ids name several.
    pub fn named(id: &str) -> Vec<Self> {
        Self::ALL.into_iter().filter(|kind| kind.id() == id || kind.table_id() == id).collect()
    }
}
