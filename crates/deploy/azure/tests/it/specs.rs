//! Workloads for the tests.

use cudock_facts::services::AzureService;
use std::time::Duration;

use cudock_azure::{
    BlobContainer, Checkpoints, DeploymentSpec, ExistingResources, Outputs, RegistryAccess, SpecVariable,
    WorkKind,
};
use cudock_base::{Secret, Timestamp, Usd};
pub(crate) use cudock_testkit::require_azure_specs as specifications;

pub(crate) const TARGETS: [AzureService; 5] =
    [AzureService::Vm, AzureService::Batch, AzureService::Ml, AzureService::ContainerApps, AzureService::Aci];

/// What no request may show. Made at run time, so that no scanner takes it for a real one.
pub(crate) fn password() -> String {
    ["sword", "fish", "-1"].concat()
}

pub(crate) fn serve() -> WorkKind {
    WorkKind::Serve { port: 8000, ready_path: Some("/v2/health/ready".to_owned()), is_public: true }
}

pub(crate) fn job(items: usize) -> WorkKind {
    WorkKind::Job {
        items: (0..items).map(|index| vec!["--item".to_owned(), format!("it's {index}")]).collect(),
        concurrent: 2,
        time_limit: Duration::from_secs(3600),
        retries: 1,
    }
}

pub(crate) fn multi_node() -> WorkKind {
    WorkKind::MultiNode { nodes: 2, processes_per_node: 4, time_limit: Duration::from_secs(1800) }
}

/// A workload that its service can run.
pub(crate) fn spec(service: AzureService, work: WorkKind) -> DeploymentSpec {
    let is_serve = matches!(work, WorkKind::Serve { .. });
    let (size, gpus) = match service {
        AzureService::Vm | AzureService::Batch | AzureService::Ml => (Some("Standard_NC4as_T4_v3"), 1),
        AzureService::ContainerApps => (Some("Consumption-GPU-NC8as-T4"), 1),
        AzureService::Aci | AzureService::Aks => (None, 0),
    };
    let has_command = !(service == AzureService::Ml && is_serve);
    DeploymentSpec {
        name: "digits".to_owned(),
        run_id: "0123456789ab".to_owned(),
        subscription: "11111111-2222-3333-4444-555555555555".to_owned(),
        region: "westeurope".to_owned(),
        service,
        size: size.map(str::to_owned),
        gpus,
        cpus: 4.0,
        memory_gib: 28.0,
        instances: if matches!(work, WorkKind::MultiNode { .. }) { 2 } else { 1 },
        is_spot: false,
        price_per_hour: Usd::from_cents(53),
        image: "registry.example.com/team/digits:1.0".to_owned(),
        command: if has_command {
            ["python", "run.py", "--name", "a b"].map(str::to_owned).to_vec()
        } else {
            Vec::new()
        },
        variables: Vec::new(),
        registry: None,
        work,
        expires: Timestamp::parse("2026-11-18T02:00:00Z").unwrap(),
        idle: None,
        checkpoints: None,
        outputs: None,
        existing: ExistingResources {
            workspace: (service == AzureService::Ml).then(|| "research/vision".to_owned()),
            ..ExistingResources::default()
        },
        owner: "someone@example.com".to_owned(),
        state: Some("fedcba987654".to_owned()),
    }
}

pub(crate) fn variables() -> Vec<SpecVariable> {
    vec![
        SpecVariable::Plain { name: "EPOCHS".to_owned(), value: "3 or 4".to_owned() },
        SpecVariable::Secret { name: "HF_TOKEN".to_owned(), value: Secret::new(password()) },
    ]
}

/// A directory that is kept in blob storage, whose signature is a secret.
pub(crate) fn checkpoints(directory: &str) -> Checkpoints {
    let url = format!("https://lab.blob.core.windows.net/runs?sv=1&sig={}", password());
    Checkpoints {
        directory: directory.to_owned(),
        storage: Some(BlobContainer::parse("CUDOCK_CHECKPOINTS", &url).unwrap()),
    }
}

/// Files and logs that are kept in blob storage, whose signature is a secret.
pub(crate) fn outputs() -> Outputs {
    let url = format!("https://lab.blob.core.windows.net/outputs?sv=1&sig={}", password());
    let storage = BlobContainer::parse("CUDOCK_OUTPUTS", &url).unwrap();
    Outputs { storage, pattern: Some("results/**/*".to_owned()) }
}

fn can_keep(service: AzureService, work: &WorkKind) -> bool {
    matches!(service, AzureService::Vm | AzureService::Batch | AzureService::Ml)
        && !matches!(work, WorkKind::Serve { .. })
}

pub(crate) fn password_access() -> RegistryAccess {
    RegistryAccess::Password {
        server: "registry.example.com".to_owned(),
        username: "puller".to_owned(),
        password: Secret::new(password()),
    }
}

pub(crate) fn identity_access() -> RegistryAccess {
    RegistryAccess::Identity { server: "team.azurecr.io".to_owned(), identity: IDENTITY.to_owned() }
}

pub(crate) const IDENTITY: &str = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/shared/providers/Microsoft.ManagedIdentity/userAssignedIdentities/puller";

/// Every combination of service, work and what may vary. Those that make no sense are among them.
pub(crate) fn all() -> Vec<DeploymentSpec> {
    let mut specs = Vec::new();
    for service in TARGETS {
        for work in [serve(), job(0), job(3), multi_node()] {
            for is_spot in [false, true] {
                for access in [None, Some(password_access()), Some(identity_access())] {
                    for has_more in [false, true] {
                        let base = spec(service, work.clone());
                        specs.push(DeploymentSpec {
                            is_spot,
                            registry: access.clone(),
                            variables: if has_more { variables() } else { Vec::new() },
                            idle: has_more.then_some(Duration::from_secs(900)),
                            checkpoints: (has_more && can_keep(service, &work))
                                .then(|| checkpoints("/checkpoints")),
                            outputs: (has_more && service == AzureService::Batch).then(outputs),
                            ..base
                        });
                    }
                }
            }
        }
    }
    specs.push(DeploymentSpec { variables: variables(), ..spec(AzureService::Batch, job(250)) });
    specs.extend(sizes());
    specs.extend(existing());
    specs
}

fn sizes() -> Vec<DeploymentSpec> {
    let mut specs = Vec::new();
    for size in
        ["Standard_NV36ads_A10_v5", "Standard_NC24ads_A100_v4", "Standard_NC40ads_H100_v5", "Standard_D4s_v5"]
    {
        for service in [AzureService::Vm, AzureService::Batch, AzureService::Ml] {
            for work in [serve(), job(0)] {
                let base = spec(service, work);
                let gpus = u32::from(size.starts_with("Standard_N"));
                specs.push(DeploymentSpec { size: Some(size.to_owned()), gpus, ..base });
            }
        }
    }
    for size in [None, Some("Consumption-GPU-NC24-A100"), Some("NC24-A100")] {
        for work in [serve(), job(2)] {
            let base = spec(AzureService::ContainerApps, work);
            let gpus = u32::from(size.is_some());
            specs.push(DeploymentSpec {
                size: size.map(str::to_owned),
                gpus,
                cpus: 0.5,
                memory_gib: 1.0,
                ..base
            });
        }
    }
    specs
}

fn existing() -> Vec<DeploymentSpec> {
    let mut specs = Vec::new();
    for work in [job(0), job(3), multi_node()] {
        let mut cluster = spec(AzureService::Ml, work.clone());
        cluster.existing.cluster = Some("gpus".to_owned());
        let mut pool = spec(AzureService::Batch, work);
        pool.existing.batch_account = Some("shared/gpubatch".to_owned());
        pool.existing.pool = Some("always-on".to_owned());
        specs.extend([cluster, pool]);
    }
    for service in TARGETS {
        for work in [serve(), job(3), multi_node()] {
            for is_spot in [false, true] {
                let mut spec = spec(service, work.clone());
                spec.is_spot = is_spot;
                spec.existing.batch_account = Some("shared/gpubatch".to_owned());
                spec.existing.container_apps_environment = Some("shared/apps".to_owned());
                spec.existing.reaper_identity = Some(IDENTITY.to_owned());
                specs.push(spec);
            }
        }
    }
    specs
}
