//! The container of an app or job, its secrets and its registry.

use cudock_base::Secret;
use serde_json::{Value, json};

use crate::services::bodies::amounts::Amounts;
use crate::services::bodies::request::non_empty;
use crate::spec::{DeploymentSpec, RegistryAccess, SpecVariable, WorkKind};

/// The secret that holds the password of the registry.
const REGISTRY_PASSWORD: &str = "registry-password";

/// The container of a workload, with an item as further arguments.
pub(super) fn container(spec: &DeploymentSpec, amounts: Amounts, item: &[String]) -> Value {
    let (program, arguments) = spec.command.split_at(spec.command.len().min(1));
    let probes = match &spec.work {
        WorkKind::Serve { port, ready_path: Some(path), .. } => Some(json!([{
            "type": "Readiness",
            "httpGet": {"path": path, "port": port},
            "periodSeconds": 5,
            "failureThreshold": 48,
        }])),
        _ => None,
    };
    json!({
        "name": "main",
        "image": spec.image,
        "command": non_empty(program),
        "args": non_empty(arguments.iter().chain(item)),
        "env": non_empty(spec.variables.iter().enumerate().map(variable)),
        "resources": {"cpu": amounts.cpus, "memory": format!("{}Gi", amounts.memory_gib)},
        "probes": probes,
    })
}

fn variable((index, variable): (usize, &SpecVariable)) -> Value {
    match variable {
        SpecVariable::Plain { name, value } => json!({"name": name, "value": value}),
        SpecVariable::Secret { name, .. } => json!({"name": name, "secretRef": secret_name(index)}),
    }
}

/// Names of secrets take fewer letters than names of variables.
fn secret_name(index: usize) -> String {
    format!("variable-{index}")
}

/// The secrets of a workload and their values, in the same order. The values are inserted when the request is sent.
pub(super) fn secrets(spec: &DeploymentSpec) -> (Vec<Value>, Vec<Secret>) {
    let variables = spec.variables.iter().enumerate().filter_map(|(index, variable)| match variable {
        SpecVariable::Secret { value, .. } => Some((secret_name(index), value.clone())),
        SpecVariable::Plain { .. } => None,
    });
    let password = match &spec.registry {
        Some(RegistryAccess::Password { password, .. }) => {
            Some((REGISTRY_PASSWORD.to_owned(), password.clone()))
        }
        _ => None,
    };
    variables.chain(password).map(|(name, value)| (json!({"name": name, "value": ""}), value)).unzip()
}

pub(super) fn registry(access: &RegistryAccess) -> Value {
    match access {
        RegistryAccess::Identity { server, identity } => json!({"server": server, "identity": identity}),
        RegistryAccess::Password { server, username, .. } => {
            json!({"server": server, "username": username, "passwordSecretRef": REGISTRY_PASSWORD})
        }
    }
}
