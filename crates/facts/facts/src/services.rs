//! The services of Azure that run containers, and the forms in which they are offered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A service of Azure that runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AzureService {
    /// Virtual machines and scale sets.
    Vm,
    /// Container Instances.
    Aci,
    /// Machine Learning.
    Ml,
    Batch,
    /// Kubernetes Service.
    Aks,
    ContainerApps,
}

impl AzureService {
    /// All of them, in the order in which messages list them.
    pub const ALL: [Self; 6] = [Self::Vm, Self::Batch, Self::Ml, Self::ContainerApps, Self::Aci, Self::Aks];

    /// Its name in flags, files and tables.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Aci => "aci",
            Self::Ml => "ml",
            Self::Batch => "batch",
            Self::Aks => "aks",
            Self::ContainerApps => "container-apps",
        }
    }

    pub const fn title(self) -> &'static str {
        match self {
            Self::Vm => "Virtual Machine",
            Self::Aci => "Container Instances",
            Self::Ml => "Machine Learning",
            Self::Batch => "Batch",
            Self::Aks => "Kubernetes Service",
            Self::ContainerApps => "Container Apps",
        }
    }

    /// Whether `cudock up` deploys to it.
    pub const fn is_deployable(self) -> bool {
        match self {
            Self::Vm | Self::Batch | Self::Ml | Self::ContainerApps | Self::Aci => true,
            Self::Aks => false,
        }
    }

    /// The services that `cudock up` deploys to.
    pub fn deployable() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|service| service.is_deployable())
    }

    pub fn named(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.id() == id)
    }
}

/// A way to run a container on Azure. Variants are in the order that breaks ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AzureOffering {
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

impl AzureOffering {
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
    pub const fn index(self) -> u8 {
        self as u8
    }

    /// Whether it runs on whole virtual machine sizes.
    pub const fn uses_vm_sizes(self) -> bool {
        !matches!(self, Self::ContainerApps | Self::ContainerAppsDedicated | Self::Aci)
    }

    /// Whether it has sizes with GPUs.
    pub const fn has_gpus(self) -> bool {
        !matches!(self, Self::Aci)
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

    /// The service that it is a form of.
    pub const fn service(self) -> AzureService {
        match self {
            Self::Vm => AzureService::Vm,
            Self::Aks => AzureService::Aks,
            Self::Batch => AzureService::Batch,
            Self::MlCluster | Self::MlServerless | Self::MlEndpoint => AzureService::Ml,
            Self::ContainerApps | Self::ContainerAppsDedicated => AzureService::ContainerApps,
            Self::Aci => AzureService::Aci,
        }
    }

    /// Whether the OS disk is billed separately.
    pub const fn bills_disk(self) -> bool {
        matches!(self, Self::Vm | Self::Aks | Self::Batch)
    }

    /// Whether it scales with the load, hour by hour.
    pub const fn autoscales(self) -> bool {
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
        Self::ALL.into_iter().filter(|kind| kind.id() == id || kind.service().id() == id).collect()
    }
}

/// How much a service manages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Management {
    /// The user manages the machines.
    #[default]
    Own,
    /// The service creates, repairs and removes the machines.
    Managed,
    /// There are no visible machines.
    Serverless,
}

impl Management {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Managed => "managed",
            Self::Serverless => "serverless",
        }
    }
}
