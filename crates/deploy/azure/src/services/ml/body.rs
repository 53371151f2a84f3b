//! Environments, clusters, jobs, endpoints and deployments of Machine Learning.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::services::bodies::names::Tags;
use crate::services::bodies::request::Identity;

/// Most resources of a workspace have their tags among the properties.
#[derive(Debug, Serialize)]
pub(super) struct Asset<P> {
    pub(super) properties: P,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnvironmentVersion {
    pub(super) image: String,
    pub(super) os_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inference_config: Option<InferenceConfig>,
    pub(super) tags: Tags,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InferenceConfig {
    pub(super) liveness_route: Route,
    pub(super) readiness_route: Route,
    pub(super) scoring_route: Route,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Route {
    pub(super) path: String,
    pub(super) port: u16,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cluster {
    pub(super) compute_type: &'static str,
    pub(super) properties: ClusterProperties,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterProperties {
    pub(super) vm_size: String,
    pub(super) vm_priority: &'static str,
    pub(super) os_type: &'static str,
    pub(super) scale_settings: ScaleSettings,
    pub(super) remote_login_port_public_access: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScaleSettings {
    pub(super) min_node_count: u32,
    pub(super) max_node_count: u32,
    pub(super) node_idle_time_before_scale_down: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandJob {
    pub(super) job_type: &'static str,
    pub(super) display_name: String,
    pub(super) experiment_name: &'static str,
    pub(super) environment_id: String,
    pub(super) command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) compute_id: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) environment_variables: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) outputs: BTreeMap<&'static str, JobOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) distribution: Option<Distribution>,
    pub(super) limits: JobLimits,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue_settings: Option<QueueSettings>,
    pub(super) resources: JobResources,
    pub(super) tags: Tags,
}

/// A directory in the workspace's storage.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobOutput {
    pub(super) job_output_type: &'static str,
    pub(super) mode: &'static str,
    pub(super) uri: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Distribution {
    pub(super) distribution_type: &'static str,
    pub(super) process_count_per_instance: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobLimits {
    pub(super) job_limits_type: &'static str,
    pub(super) timeout: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueueSettings {
    pub(super) job_tier: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobResources {
    pub(super) instance_count: u32,
    /// The size, for serverless compute only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instance_type: Option<String>,
    pub(super) shm_size: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Located<P> {
    pub(super) location: String,
    pub(super) tags: Tags,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) identity: Option<Identity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sku: Option<Sku>,
    pub(super) properties: P,
}

#[derive(Debug, Serialize)]
pub(super) struct Sku {
    pub(super) name: &'static str,
    pub(super) capacity: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Endpoint {
    pub(super) auth_mode: &'static str,
    pub(super) public_network_access: &'static str,
    /// Percent for each deployment.
    pub(super) traffic: BTreeMap<&'static str, u32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OnlineDeployment {
    pub(super) endpoint_compute_type: &'static str,
    pub(super) instance_type: String,
    pub(super) environment_id: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) environment_variables: BTreeMap<String, String>,
    pub(super) app_insights_enabled: bool,
    pub(super) scale_settings: OnlineScale,
    pub(super) request_settings: RequestSettings,
    pub(super) liveness_probe: Probe,
    pub(super) readiness_probe: Probe,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OnlineScale {
    pub(super) scale_type: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestSettings {
    pub(super) request_timeout: &'static str,
    pub(super) max_concurrent_requests_per_instance: u32,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Probe {
    pub(super) initial_delay: &'static str,
    pub(super) period: &'static str,
    pub(super) timeout: &'static str,
    pub(super) failure_threshold: u32,
    pub(super) success_threshold: u32,
}
