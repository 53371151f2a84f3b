//! Kubernetes Service: planned and priced, and not deployed to.

use cudock_facts::services::AzureService;

use crate::services::backend::{Backend, Requirements};

pub(super) struct Aks;

impl Backend for Aks {
    fn service(&self) -> AzureService {
        AzureService::Aks
    }

    fn requirements(&self) -> &'static Requirements {
        &Requirements {
            provider: "Microsoft.ContainerService",
            resource_type: "managedClusters",
            other_providers: &[],
            actions: &["Microsoft.ContainerService/managedClusters/write"],
            has_vm_sizes: true,
            reads_vm_sizes: true,
            raises_quotas: false,
        }
    }
}
