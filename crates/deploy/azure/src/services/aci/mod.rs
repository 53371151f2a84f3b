//! Container Instances: one container group. They have had no GPUs since 2025-07-14.

mod backend;
mod preflight;
mod status;

pub(super) use backend::Aci;

use cudock_base::Secret;
use cudock_facts::finding::{Finding, Severity};
use serde_json::{Value, json};

use crate::codes;
use crate::deployment::{Phase, Step, WorkShape};
use crate::services::bodies::amounts::Amounts;
use crate::services::bodies::names::Names;
use crate::services::bodies::request::{Identity, body, non_empty, put, resource};
use crate::services::checks::losses;
use crate::services::{Translation, TranslationError};
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
    let mut secrets: Vec<(String, Secret)> = Vec::new();
    let containers: Vec<Value> = containers(spec.work.shape())
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
            container(spec, amounts, &name, item)
        })
        .collect();
    if let Some(RegistryAccess::Password { password, .. }) = &spec.registry {
        secrets.push(("/properties/imageRegistryCredentials/0/password".to_owned(), password.clone()));
    }
    let restart_policy = match &spec.work {
        WorkKind::Serve { .. } => "Always",
        WorkKind::Job { retries: 0, .. } | WorkKind::MultiNode { .. } => "Never",
        WorkKind::Job { .. } => "OnFailure",
    };
    let address = match spec.work {
        WorkKind::Serve { port, is_public: true, .. } => {
            Some(json!({"type": "Public", "ports": [{"port": port, "protocol": "TCP"}]}))
        }
        _ => None,
    };
    let properties = json!({
        "osType": "Linux",
        "priority": spec.is_spot.then_some("Spot"),
        "restartPolicy": restart_policy,
        "containers": containers,
        "imageRegistryCredentials": non_empty(spec.registry.iter().map(credential)),
        "ipAddress": address,
    });
    let mut request = body(resource(spec, Identity::of_registry(spec).as_ref(), &properties));
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

fn container(spec: &DeploymentSpec, amounts: Amounts, name: &str, item: &[String]) -> Value {
    let (ports, probe) = match &spec.work {
        WorkKind::Serve { port, ready_path, .. } => {
            let probe = |path: &String| json!({"httpGet": {"path": path, "port": port, "scheme": "http"}, "periodSeconds": 5});
            (Some(json!([{"port": port, "protocol": "TCP"}])), ready_path.as_ref().map(probe))
        }
        _ => (None, None),
    };
    json!({
        "name": name,
        "properties": {
            "image": spec.image,
            "command": non_empty(spec.command.iter().chain(item)),
            "environmentVariables": non_empty(spec.variables.iter().map(variable)),
            "ports": ports,
            "resources": {"requests": {"cpu": amounts.cpus, "memoryInGB": amounts.memory_gib}},
            "readinessProbe": probe,
        },
    })
}

/// A variable; a secret is inserted when the request is sent.
fn variable(variable: &SpecVariable) -> Value {
    match variable {
        SpecVariable::Plain { name, value } => json!({"name": name, "value": value}),
        SpecVariable::Secret { name, .. } => json!({"name": name, "secureValue": ""}),
    }
}

/// The sign-in to the registry; a password is inserted when the request is sent.
fn credential(access: &RegistryAccess) -> Value {
    match access {
        RegistryAccess::Identity { server, identity } => json!({"server": server, "identity": identity}),
        RegistryAccess::Password { server, username, .. } => {
            json!({"server": server, "username": username, "password": ""})
        }
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
