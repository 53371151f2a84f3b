//! The bodies of Machine Learning's requests, and the YAML files that result in the same ones.
//!
//! Unknown fields of a body are errors: they would be missing from the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::duration::milliseconds;
use crate::export::outline::ResourcePath;

type Texts = BTreeMap<String, String>;

const SCHEMAS: &str = "https://azuremlschemas.azureedge.net/latest";

fn schema(name: &str) -> String {
    format!("{SCHEMAS}/{name}.schema.json")
}

/// A body with nothing but properties.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Properties<T> {
    properties: T,
}

pub(super) type EnvironmentRequest = Properties<EnvironmentProperties>;
pub(super) type JobRequest = Properties<JobProperties>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EnvironmentProperties {
    image: String,
    os_type: Option<String>,
    description: Option<String>,
    #[serde(default)]
    tags: Texts,
    inference_config: Option<InferenceConfig>,
}

/// The routes at which a user's image responds. The same in the body and in the file, but for the
/// names.
#[derive(Deserialize, Serialize)]
#[serde(rename_all(deserialize = "camelCase"), deny_unknown_fields)]
struct InferenceConfig {
    liveness_route: Route,
    readiness_route: Route,
    scoring_route: Route,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Route {
    path: String,
    port: u16,
}

#[derive(Serialize)]
pub(super) struct EnvironmentFile {
    #[serde(rename = "$schema")]
    schema: String,
    name: String,
    version: String,
    image: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    os_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: Texts,
    #[serde(skip_serializing_if = "Option::is_none")]
    inference_config: Option<InferenceConfig>,
}

impl EnvironmentRequest {
    pub(super) fn into_file(self, path: &ResourcePath<'_>) -> EnvironmentFile {
        let EnvironmentProperties { image, os_type, description, tags, inference_config } = self.properties;
        let name = |index: usize| path.names.get(index).copied().unwrap_or_default().to_owned();
        EnvironmentFile {
            schema: schema("environment"),
            name: name(1),
            version: name(2),
            image,
            os_type: os_type.map(|os| os.to_lowercase()),
            description,
            tags,
            inference_config,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct JobProperties {
    job_type: String,
    command: String,
    environment_id: String,
    #[serde(default)]
    environment_variables: Texts,
    display_name: Option<String>,
    experiment_name: Option<String>,
    description: Option<String>,
    #[serde(default)]
    tags: Texts,
    compute_id: Option<String>,
    resources: Option<JobResources>,
    #[serde(default)]
    outputs: BTreeMap<String, JobOutput>,
    distribution: Option<Distribution>,
    limits: Option<JobLimits>,
    queue_settings: Option<QueueSettings>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct JobOutput {
    #[serde(rename(deserialize = "jobOutputType", serialize = "type"))]
    kind: String,
    mode: String,
    #[serde(rename(deserialize = "uri", serialize = "path"))]
    address: String,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all(deserialize = "camelCase"), deny_unknown_fields)]
struct JobResources {
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shm_size: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Distribution {
    #[serde(rename(deserialize = "distributionType", serialize = "type"))]
    kind: String,
    #[serde(rename(deserialize = "processCountPerInstance"), skip_serializing_if = "Option::is_none")]
    process_count_per_instance: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JobLimits {
    #[serde(rename = "jobLimitsType")]
    _kind: String,
    timeout: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all(deserialize = "camelCase"), deny_unknown_fields)]
struct QueueSettings {
    job_tier: String,
}

#[derive(Serialize)]
pub(super) struct JobFile {
    #[serde(rename = "$schema")]
    schema: String,
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: Texts,
    command: String,
    environment: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    environment_variables: Texts,
    #[serde(skip_serializing_if = "Option::is_none")]
    compute: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    outputs: BTreeMap<String, JobOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<JobResources>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distribution: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<TimeLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_settings: Option<QueueSettings>,
}

/// A time limit in seconds.
#[derive(Serialize)]
struct TimeLimit {
    timeout: u64,
}

impl JobOutput {
    /// Modes have shorter names in files.
    fn into_file(self) -> Self {
        let mode = if self.mode == "ReadWriteMount" { "rw_mount".to_owned() } else { self.mode };
        Self { mode, ..self }
    }
}

impl JobRequest {
    pub(super) fn into_file(self, path: &ResourcePath<'_>) -> Result<JobFile, String> {
        let job = self.properties;
        if job.job_type != "Command" {
            return Err(format!("a job of type {}", job.job_type));
        }
        let timeout = job.limits.and_then(|limits| limits.timeout);
        let timeout = timeout.map(|timeout| milliseconds(&timeout)).transpose()?;
        Ok(JobFile {
            schema: schema("commandJob"),
            kind: "command",
            name: path.names.last().copied().unwrap_or_default().to_owned(),
            display_name: job.display_name,
            experiment_name: job.experiment_name,
            description: job.description,
            tags: job.tags,
            command: job.command,
            environment: environment(&job.environment_id)?,
            environment_variables: job.environment_variables,
            compute: job.compute_id.as_deref().map(compute),
            outputs: job.outputs.into_iter().map(|(name, output)| (name, output.into_file())).collect(),
            resources: job.resources,
            distribution: job.distribution.map(|distribution| Distribution {
                kind: distribution.kind.to_lowercase(),
                process_count_per_instance: distribution.process_count_per_instance,
            }),
            limits: timeout.map(|timeout| TimeLimit { timeout: timeout / 1000 }),
            queue_settings: job.queue_settings,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterRequest {
    location: String,
    #[serde(default)]
    tags: Texts,
    identity: Option<IdentityRequest>,
    properties: ClusterCompute,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClusterCompute {
    compute_type: String,
    properties: ClusterProperties,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClusterProperties {
    vm_size: String,
    vm_priority: String,
    #[serde(rename = "osType")]
    _os_type: String,
    scale_settings: ClusterScale,
    remote_login_port_public_access: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClusterScale {
    min_node_count: u32,
    max_node_count: u32,
    node_idle_time_before_scale_down: String,
}

#[derive(Serialize)]
pub(super) struct ClusterFile {
    #[serde(rename = "$schema")]
    schema: String,
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    location: String,
    size: String,
    tier: String,
    min_instances: u32,
    max_instances: u32,
    /// Seconds.
    idle_time_before_scale_down: u64,
    ssh_public_access_enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<IdentityFile>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: Texts,
}

impl ClusterRequest {
    pub(super) fn into_file(self, path: &ResourcePath<'_>) -> Result<ClusterFile, String> {
        let ClusterCompute { compute_type, properties } = self.properties;
        if compute_type != "AmlCompute" {
            return Err(format!("compute of type {compute_type}"));
        }
        let scale = properties.scale_settings;
        Ok(ClusterFile {
            schema: schema("amlCompute"),
            name: path.names.last().copied().unwrap_or_default().to_owned(),
            kind: "amlcompute",
            location: self.location,
            size: properties.vm_size,
            tier: snake_case(&properties.vm_priority),
            min_instances: scale.min_node_count,
            max_instances: scale.max_node_count,
            idle_time_before_scale_down: milliseconds(&scale.node_idle_time_before_scale_down)? / 1000,
            ssh_public_access_enabled: properties.remote_login_port_public_access == "Enabled",
            identity: self.identity.map(IdentityRequest::into_file),
            tags: self.tags,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EndpointRequest {
    location: String,
    #[serde(default)]
    tags: Texts,
    identity: Option<IdentityRequest>,
    properties: EndpointProperties,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct IdentityRequest {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    user_assigned_identities: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EndpointProperties {
    auth_mode: String,
    description: Option<String>,
    public_network_access: Option<String>,
    #[serde(default)]
    traffic: BTreeMap<String, u32>,
}

#[derive(Serialize)]
pub(super) struct EndpointFile {
    #[serde(rename = "$schema")]
    schema: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    location: String,
    auth_mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_network_access: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<IdentityFile>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: Texts,
}

#[derive(Serialize)]
struct IdentityFile {
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    user_assigned_identities: Vec<IdentityReference>,
}

#[derive(Serialize)]
struct IdentityReference {
    resource_id: String,
}

impl IdentityRequest {
    fn into_file(self) -> IdentityFile {
        let ids = self.user_assigned_identities.into_keys();
        IdentityFile {
            kind: snake_case(&self.kind),
            user_assigned_identities: ids.map(|resource_id| IdentityReference { resource_id }).collect(),
        }
    }
}

impl EndpointRequest {
    /// The percentage of requests for each deployment, as `az ml` expects it.
    pub(super) fn traffic(&self) -> String {
        let shares = self.properties.traffic.iter().map(|(name, share)| format!("{name}={share}"));
        shares.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn into_file(self, path: &ResourcePath<'_>) -> EndpointFile {
        EndpointFile {
            schema: schema("managedOnlineEndpoint"),
            name: path.names.last().copied().unwrap_or_default().to_owned(),
            description: self.properties.description,
            location: self.location,
            auth_mode: snake_case(&self.properties.auth_mode),
            public_network_access: self.properties.public_network_access.map(|access| access.to_lowercase()),
            identity: self.identity.map(IdentityRequest::into_file),
            tags: self.tags,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OnlineDeploymentRequest {
    #[serde(rename = "location")]
    _location: String,
    #[serde(default)]
    tags: Texts,
    sku: Sku,
    properties: OnlineDeploymentProperties,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sku {
    #[serde(rename = "name")]
    _name: String,
    capacity: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OnlineDeploymentProperties {
    endpoint_compute_type: String,
    environment_id: String,
    #[serde(default)]
    environment_variables: Texts,
    instance_type: String,
    description: Option<String>,
    app_insights_enabled: Option<bool>,
    liveness_probe: Option<Probe>,
    readiness_probe: Option<Probe>,
    request_settings: Option<RequestSettings>,
    #[serde(rename = "scaleSettings")]
    _scale_settings: Option<ScaleSettings>,
}

/// A fixed number of instances, which is the default of the file.
#[derive(Deserialize)]
#[serde(tag = "scaleType", deny_unknown_fields)]
enum ScaleSettings {
    Default,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Probe {
    failure_threshold: Option<u32>,
    success_threshold: Option<u32>,
    timeout: Option<String>,
    period: Option<String>,
    initial_delay: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RequestSettings {
    max_concurrent_requests_per_instance: Option<u32>,
    request_timeout: Option<String>,
}

#[derive(Serialize)]
pub(super) struct OnlineDeploymentFile {
    #[serde(rename = "$schema")]
    schema: String,
    name: String,
    endpoint_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    environment: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    environment_variables: Texts,
    instance_type: String,
    instance_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_insights_enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    liveness_probe: Option<ProbeFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    readiness_probe: Option<ProbeFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_settings: Option<RequestSettingsFile>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: Texts,
}

/// Times in seconds.
#[derive(Serialize)]
struct ProbeFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_threshold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    success_threshold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_delay: Option<u64>,
}

#[derive(Serialize)]
struct RequestSettingsFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_concurrent_requests_per_instance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_timeout_ms: Option<u64>,
}

impl Probe {
    fn into_file(self) -> Result<ProbeFile, String> {
        let seconds =
            |time: Option<String>| time.map(|time| milliseconds(&time).map(|ms| ms / 1000)).transpose();
        Ok(ProbeFile {
            failure_threshold: self.failure_threshold,
            success_threshold: self.success_threshold,
            timeout: seconds(self.timeout)?,
            period: seconds(self.period)?,
            initial_delay: seconds(self.initial_delay)?,
        })
    }
}

impl OnlineDeploymentRequest {
    pub(super) fn into_file(self, path: &ResourcePath<'_>) -> Result<OnlineDeploymentFile, String> {
        let properties = self.properties;
        if properties.endpoint_compute_type != "Managed" {
            return Err(format!("a deployment of type {}", properties.endpoint_compute_type));
        }
        let name = |index: usize| path.names.get(index).copied().unwrap_or_default().to_owned();
        let settings = properties.request_settings.map(|settings| {
            Ok::<_, String>(RequestSettingsFile {
                max_concurrent_requests_per_instance: settings.max_concurrent_requests_per_instance,
                request_timeout_ms: settings.request_timeout.map(|time| milliseconds(&time)).transpose()?,
            })
        });
        Ok(OnlineDeploymentFile {
            schema: schema("managedOnlineDeployment"),
            name: name(2),
            endpoint_name: name(1),
            description: properties.description,
            environment: environment(&properties.environment_id)?,
            environment_variables: properties.environment_variables,
            instance_type: properties.instance_type,
            instance_count: self.sku.capacity,
            app_insights_enabled: properties.app_insights_enabled,
            liveness_probe: properties.liveness_probe.map(Probe::into_file).transpose()?,
            readiness_probe: properties.readiness_probe.map(Probe::into_file).transpose()?,
            request_settings: settings.transpose()?,
            tags: self.tags,
        })
    }
}

/// An environment by its name and version, from its id.
fn environment(id: &str) -> Result<String, String> {
    let segments: Vec<&str> = id.split('/').collect();
    match segments.as_slice() {
        [.., "environments", name, "versions", version] => Ok(format!("azureml:{name}:{version}")),
        _ => Err(format!("`{id}` is not the id of an environment")),
    }
}

/// A compute cluster by its name, from its id.
fn compute(id: &str) -> String {
    format!("azureml:{}", id.rsplit('/').next().unwrap_or_default())
}

/// `SystemAssigned` as `system_assigned`, `AMLToken` as `aml_token`.
fn snake_case(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    let mut was_lower = false;
    while let Some(c) = rest.next() {
        let starts_word = c.is_ascii_uppercase() && rest.peek().is_some_and(char::is_ascii_lowercase);
        if c.is_ascii_uppercase() && !out.is_empty() && (was_lower || starts_word) {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        was_lower = c.is_ascii_lowercase();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_service_become_names_of_the_file() {
        let cases = [
            ("Key", "key"),
            ("AMLToken", "aml_token"),
            ("AADToken", "aad_token"),
            ("SystemAssigned", "system_assigned"),
            ("UserAssigned", "user_assigned"),
        ];
        for (name, expected) in cases {
            assert_eq!(snake_case(name), expected, "{name}");
        }
    }

    #[test]
    fn an_environment_is_named_by_its_id() {
        assert_eq!(environment("/subscriptions/s/x/environments/e/versions/1").unwrap(), "azureml:e:1");
        assert!(environment("azureml:e:1").is_err());
    }
}
