//! The backend of each service.

use cudock_facts::services::AzureService;

use crate::services::backend::Backend;
use crate::services::{aci, aks, batch, container_apps, ml, vm};

/// The backend of a service.
pub(crate) fn backend(service: AzureService) -> &'static dyn Backend {
    match service {
        AzureService::Vm => &vm::Vm,
        AzureService::Batch => &batch::Batch,
        AzureService::Ml => &ml::Ml,
        AzureService::ContainerApps => &container_apps::ContainerApps,
        AzureService::Aci => &aci::Aci,
        AzureService::Aks => &aks::Aks,
    }
}
