//! One deployment to each service, with texts that need quoting everywhere.

use cudock_facts::services::AzureService;
use std::time::Duration;

use cudock_azure::{DeploymentSpec, ExistingResources, RegistryAccess, SpecVariable, WorkKind};
use cudock_base::{Secret, Timestamp, Usd};

/// None of them may be in a file.
pub(crate) const SECRETS: [(&str, &str); 2] = [("HF_TOKEN", "hf \"token\" it's"), ("PASSWORD", "pass-word")];

pub(crate) fn jobs() -> [(&'static str, DeploymentSpec); 9] {
    let job = |items: &[&str]| WorkKind::Job {
        items: items.iter().map(|item| vec![(*item).to_owned()]).collect(),
        concurrent: 2,
        time_limit: Duration::from_secs(3600),
        retries: 1,
    };
    let serve =
        || WorkKind::Serve { port: 8000, ready_path: Some("/v2/health/ready".to_owned()), is_public: true };
    let nodes =
        WorkKind::MultiNode { nodes: 2, processes_per_node: 1, time_limit: Duration::from_secs(7200) };
    let t4 = Some("Standard_NC4as_T4_v3");
    [
        ("aci", spec(AzureService::Aci, None, 0, job(&[]))),
        ("batch", spec(AzureService::Batch, t4, 1, job(&["a.csv", "it's [b].csv"]))),
        ("container-app", spec(AzureService::ContainerApps, Some("Consumption-GPU-NC8as-T4"), 1, serve())),
        ("container-job", spec(AzureService::ContainerApps, Some("Consumption-GPU-NC8as-T4"), 1, job(&[]))),
        // Its secrets are a part of its start script, which is not exported.
        (
            "vm",
            DeploymentSpec {
                variables: vec![plain()],
                registry: None,
                ..spec(AzureService::Vm, t4, 1, serve())
            },
        ),
        ("ml-job", spec(AzureService::Ml, t4, 1, job(&[]))),
        ("ml-items", spec(AzureService::Ml, t4, 1, job(&["a.csv", "it's [b].csv"]))),
        // It runs the image's own program.
        ("ml-endpoint", DeploymentSpec { command: Vec::new(), ..spec(AzureService::Ml, t4, 1, serve()) }),
        ("ml-nodes", DeploymentSpec { instances: 2, ..spec(AzureService::Ml, t4, 1, nodes) }),
    ]
}

fn plain() -> SpecVariable {
    SpecVariable::Plain { name: "EPOCHS".to_owned(), value: "3".to_owned() }
}

fn spec(service: AzureService, size: Option<&str>, gpus: u32, work: WorkKind) -> DeploymentSpec {
    let password = RegistryAccess::Password {
        server: "registry.example.com".to_owned(),
        username: "puller".to_owned(),
        password: Secret::new(SECRETS[1].1),
    };
    DeploymentSpec {
        name: "digits".to_owned(),
        run_id: "0123456789ab".to_owned(),
        subscription: "00000000-0000-0000-0000-000000000001".to_owned(),
        region: "westeurope".to_owned(),
        service,
        size: size.map(str::to_owned),
        gpus,
        cpus: 2.0,
        memory_gib: 4.0,
        instances: 1,
        is_spot: false,
        price_per_hour: Usd::from_cents(53),
        image: "registry.example.com/digits:1".to_owned(),
        command: ["python", "train.py", "--note", "it's ${HOME}"].map(str::to_owned).to_vec(),
        variables: vec![
            plain(),
            SpecVariable::Secret { name: "HF_TOKEN".to_owned(), value: Secret::new(SECRETS[0].1) },
        ],
        registry: (service != AzureService::Ml).then_some(password),
        work,
        expires: Timestamp::parse("2026-11-18T02:00:00Z").unwrap(),
        idle: None,
        checkpoints: None,
        outputs: None,
        existing: ExistingResources {
            workspace: (service == AzureService::Ml).then(|| "team/lab".to_owned()),
            ..ExistingResources::default()
        },
        owner: "ada@example.com".to_owned(),
        state: None,
    }
}
