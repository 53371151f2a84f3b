//! Environments, apps and jobs of Container Apps.

use serde::Serialize;

use crate::services::bodies::amounts::Amounts;
use crate::spec::{DeploymentSpec, RegistryAccess, SpecVariable, WorkKind};

/// The secret that holds the password of the registry.
const REGISTRY_PASSWORD: &str = "registry-password";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnvironmentProperties {
    pub(super) workload_profiles: Vec<WorkloadProfile>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkloadProfile {
    pub(super) name: &'static str,
    pub(super) workload_profile_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) minimum_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) maximum_count: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AppProperties {
    pub(super) environment_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workload_profile_name: Option<String>,
    pub(super) configuration: AppConfiguration,
    pub(super) template: AppTemplate,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AppConfiguration {
    pub(super) active_revisions_mode: &'static str,
    pub(super) ingress: Ingress,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) secrets: Vec<SecretValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) registries: Vec<Registry>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ingress {
    pub(super) external: bool,
    pub(super) target_port: u16,
    pub(super) transport: &'static str,
    pub(super) allow_insecure: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct AppTemplate {
    pub(super) containers: Vec<Container>,
    pub(super) scale: Scale,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Scale {
    pub(super) min_replicas: u32,
    pub(super) max_replicas: u32,
    /// Seconds without a request until the last replica ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cooldown_period: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobProperties {
    pub(super) environment_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workload_profile_name: Option<String>,
    pub(super) configuration: JobConfiguration,
    pub(super) template: JobTemplate,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobConfiguration {
    pub(super) trigger_type: &'static str,
    /// Seconds.
    pub(super) replica_timeout: u64,
    pub(super) replica_retry_limit: u32,
    pub(super) manual_trigger_config: ManualTrigger,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) secrets: Vec<SecretValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) registries: Vec<Registry>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ManualTrigger {
    pub(super) parallelism: u32,
    pub(super) replica_completion_count: u32,
}

/// The containers of a job, and of one execution that replaces them.
#[derive(Debug, Serialize)]
pub(super) struct JobTemplate {
    pub(super) containers: Vec<Container>,
}

#[derive(Debug, Serialize)]
pub(super) struct Container {
    name: &'static str,
    image: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    env: Vec<Variable>,
    resources: Resources,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    probes: Vec<Probe>,
}

impl Container {
    /// The container of a workload, with an item as further arguments.
    pub(super) fn new(spec: &DeploymentSpec, amounts: Amounts, item: &[String]) -> Self {
        let (program, arguments) = spec.command.split_at(spec.command.len().min(1));
        let probes = match &spec.work {
            WorkKind::Serve { port, ready_path: Some(path), .. } => vec![Probe {
                kind: "Readiness",
                http_get: HttpGet { path: path.clone(), port: *port },
                period_seconds: 5,
                failure_threshold: 48,
            }],
            _ => Vec::new(),
        };
        Self {
            name: "main",
            image: spec.image.clone(),
            command: program.to_vec(),
            args: arguments.iter().chain(item).cloned().collect(),
            env: spec.variables.iter().enumerate().map(Variable::new).collect(),
            resources: Resources { cpu: amounts.cpus, memory: format!("{}Gi", amounts.memory_gib) },
            probes,
        }
    }
}

#[derive(Debug, Serialize)]
struct Resources {
    cpu: f64,
    memory: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Probe {
    #[serde(rename = "type")]
    kind: &'static str,
    http_get: HttpGet,
    period_seconds: u32,
    failure_threshold: u32,
}

#[derive(Debug, Serialize)]
struct HttpGet {
    path: String,
    port: u16,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Variable {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_ref: Option<String>,
}

impl Variable {
    fn new((index, variable): (usize, &SpecVariable)) -> Self {
        match variable {
            SpecVariable::Plain { name, value } => {
                Self { name: name.clone(), value: Some(value.clone()), secret_ref: None }
            }
            SpecVariable::Secret { name, .. } => {
                Self { name: name.clone(), value: None, secret_ref: Some(secret_name(index)) }
            }
        }
    }
}

/// Names of secrets take fewer letters than names of variables.
fn secret_name(index: usize) -> String {
    format!("variable-{index}")
}

/// A secret whose value is put in when the request is sent.
#[derive(Debug, Serialize)]
pub(super) struct SecretValue {
    name: String,
    value: &'static str,
}

/// The secrets of a workload and their values, in the same order.
pub(super) fn secrets(spec: &DeploymentSpec) -> (Vec<SecretValue>, Vec<cudock_base::Secret>) {
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
    variables.chain(password).map(|(name, value)| (SecretValue { name, value: "" }, value)).unzip()
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Registry {
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password_secret_ref: Option<&'static str>,
}

impl Registry {
    pub(super) fn new(access: &RegistryAccess) -> Self {
        match access {
            RegistryAccess::Identity { server, identity } => Self {
                server: server.clone(),
                identity: Some(identity.clone()),
                username: None,
                password_secret_ref: None,
            },
            RegistryAccess::Password { server, username, .. } => Self {
                server: server.clone(),
                identity: None,
                username: Some(username.clone()),
                password_secret_ref: Some(REGISTRY_PASSWORD),
            },
        }
    }
}
