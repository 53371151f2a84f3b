//! Container Instances: one container group. They have had no GPUs since 2025-07-14.

mod backend;
mod body;
mod preflight;
mod status;

pub(super) use backend::Aci;

use cudock_base::Secret;
use cudock_facts::finding::{Finding, Severity};

use crate::codes;
use crate::deployment::{Phase, Step, WorkShape};
use crate::services::aci::body::{
    Container, ContainerProperties, GroupProperties, HttpGet, IpAddress, Port, Probe, RegistryCredential,
    Requests, Resources, Variable,
};
use crate::services::bodies::amounts::Amounts;
use crate::services::bodies::names::{Names, Tags};
use crate::services::bodies::request::{Identity, ResourceBody, body, put};
use crate::services::{Translation, TranslationError, losses};
use crate::spec::{DeploymentSpec, RegistryAccess, SpecVariable, WorkKind};

pub(super) const VERSION: &str = "2023-05-01";
/// The container group.
const GROUP: &str = "main";
const MOST_CONTAINERS: usize = 60;
const MOST_CPUS: f64 = 31.0;
const MOST_MEMORY_GIB: f64 = 240.0;
/// Tolerated error of a sum of numbers that have no exact binary form.
const ROUNDING: f64 = 1e-6;

/// The names of the containers: one for each item of a job.
fn containers(work: WorkShape) -> Vec<String> {
    match work {
        WorkShape::Job { tasks } if tasks > 1 => (0..tasks).map(|index| format!("item-{index}")).collect(),
        _ => vec!["main".to_owned()],
    }
}

fn translate(spec: &DeploymentSpec) -> Result<Translation<'static>, TranslationError> {
    let amounts = Amounts { cpus: spec.cpus, memory_gib: spec.memory_gib }.of_container_instances();
    let losses = check(spec, amounts)?;
    let none = [Vec::new()];
    let items = match &spec.work {
        WorkKind::Job { items, .. } if !items.is_empty() => items.as_slice(),
        _ => none.as_slice(),
    };
    let names = Names::of_spec(spec);
    let variables: Vec<Variable> = spec.variables.iter().map(Variable::new).collect();
    let mut secrets: Vec<(String, Secret)> = Vec::new();
    let containers: Vec<Container> = containers(super::identity(spec).work)
        .into_iter()
        .zip(items)
        .enumerate()
        .map(|(index, (name, item))| {
            for (at, variable) in spec.variables.iter().enumerate() {
                if let SpecVariable::Secret { value, .. } = variable {
                    let pointer = format!(
                        "/properties/containers/{index}/properties/environmentVariables/{at}/secureValue"
                    );
                    secrets.push((pointer, value.clone()));
                }
            }
            container(spec, amounts, name, item, variables.clone())
        })
        .collect();
    if let Some(RegistryAccess::Password { password, .. }) = &spec.registry {
        secrets.push(("/properties/imageRegistryCredentials/0/password".to_owned(), password.clone()));
    }
    let identity = match &spec.registry {
        Some(RegistryAccess::Identity { identity, .. }) => Some(Identity::user(identity)),
        _ => None,
    };
    let resource = ResourceBody {
        location: spec.region.clone(),
        tags: Tags::new(spec),
        identity,
        properties: GroupProperties {
            os_type: "Linux",
            priority: spec.is_spot.then_some("Spot"),
            restart_policy: match &spec.work {
                WorkKind::Serve { .. } => "Always",
                WorkKind::Job { retries: 0, .. } | WorkKind::MultiNode { .. } => "Never",
                WorkKind::Job { .. } => "OnFailure",
            },
            containers,
            image_registry_credentials: spec.registry.iter().map(RegistryCredential::new).collect(),
            ip_address: match spec.work {
                WorkKind::Serve { port, is_public: true, .. } => Some(IpAddress::public(port)),
                _ => None,
            },
        },
    };
    let mut request = body(&resource)?;
    for (pointer, secret) in secrets {
        request = request.secret(pointer, secret);
    }
    let id = group_id(names);
    let step = Step::new("containers", Phase::Create, put(&id, VERSION, request)).billed().within_minutes(30);
    Ok(Translation { steps: vec![step], losses, ..Translation::default() })
}

fn group_id(names: Names<'_>) -> String {
    names.resource(&format!("Microsoft.ContainerInstance/containerGroups/{GROUP}"))
}

fn container(
    spec: &DeploymentSpec,
    amounts: Amounts,
    name: String,
    item: &[String],
    variables: Vec<Variable>,
) -> Container {
    let (ports, readiness_probe) = match &spec.work {
        WorkKind::Serve { port, ready_path, .. } => {
            let probe = ready_path.as_ref().map(|path| Probe {
                http_get: HttpGet { path: path.clone(), port: *port, scheme: "http" },
                period_seconds: 5,
            });
            (vec![Port { port: *port, protocol: "TCP" }], probe)
        }
        _ => (Vec::new(), None),
    };
    Container {
        name,
        properties: ContainerProperties {
            image: spec.image.clone(),
            command: spec.command.iter().chain(item).cloned().collect(),
            environment_variables: variables,
            ports,
            resources: Resources {
                requests: Requests { cpu: amounts.cpus, memory_in_gb: amounts.memory_gib },
            },
            readiness_probe,
        },
    }
}

fn check(spec: &DeploymentSpec, amounts: Amounts) -> Result<Vec<Finding>, TranslationError> {
    if spec.gpus > 0 {
        return Err(TranslationError::new(
            "Container Instances have had no GPUs since 2025-07-14 (CD0803); the API still accepts them and fails later",
        )
        .hint("deploy to container-apps, batch, ml or vm"));
    }
    let items = match &spec.work {
        WorkKind::MultiNode { .. } => {
            return Err(TranslationError::new("containers of different groups cannot work together")
                .hint("deploy multi-node jobs to batch or ml"));
        }
        WorkKind::Serve { is_public: true, .. } if spec.is_spot => {
            return Err(TranslationError::new("Spot container groups have no public address"));
        }
        WorkKind::Serve { .. } => 1,
        WorkKind::Job { items, .. } => items.len().max(1),
    };
    if spec.instances > 1 {
        return Err(TranslationError::new("a container group is one instance")
            .hint("deploy several instances to container-apps"));
    }
    let containers = f64::from(u32::try_from(items).unwrap_or(u32::MAX));
    if items > MOST_CONTAINERS
        || amounts.cpus * containers > MOST_CPUS + ROUNDING
        || amounts.memory_gib * containers > MOST_MEMORY_GIB + ROUNDING
    {
        return Err(TranslationError::new(format!(
            "a container group has at most {MOST_CONTAINERS} containers, {MOST_CPUS} processors and {MOST_MEMORY_GIB} GB of memory"
        ))
        .hint("deploy many items to batch"));
    }
    Ok(lost(spec, items))
}

fn lost(spec: &DeploymentSpec, items: usize) -> Vec<Finding> {
    let mut losses = Vec::new();
    if let WorkKind::Job { concurrent, .. } = &spec.work {
        losses.push(Finding::new(
            codes::LIMIT_NOT_KEPT,
            Severity::Note,
            "Container Instances have no time limit for a job: it ends with its program or at the deadline",
            "end the program by itself, or choose an earlier deadline with --ttl",
        ));
        if items > usize::try_from(*concurrent).unwrap_or(usize::MAX) {
            losses.push(Finding::new(
                codes::LIMIT_NOT_KEPT,
                Severity::Warning,
                format!("all {items} items run at the same time, not {concurrent}"),
                "deploy to batch, which runs a number of items at a time",
            ));
        }
    }
    if matches!(spec.work, WorkKind::Serve { is_public: false, .. }) {
        losses.push(losses::not_reachable());
    }
    losses
}
