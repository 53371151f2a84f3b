//! Accounts, jobs with automatic pools, and tasks of Batch.

use serde::Serialize;

use crate::services::bodies::names::Tags;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccountProperties {
    pub(super) pool_allocation_mode: &'static str,
    pub(super) allowed_authentication_modes: [&'static str; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) display_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_parallel_tasks: Option<u32>,
    pub(super) constraints: JobConstraints,
    pub(super) pool_info: PoolInfo,
    pub(super) metadata: Vec<Metadata>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobConstraints {
    pub(super) max_wall_clock_time: String,
    pub(super) max_task_retry_count: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum PoolInfo {
    PoolId(String),
    AutoPoolSpecification(Box<AutoPool>),
}

/// A pool that Batch creates with the job and deletes with it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AutoPool {
    pub(super) auto_pool_id_prefix: String,
    pub(super) pool_lifetime_option: &'static str,
    pub(super) keep_alive: bool,
    pub(super) pool: Pool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pool {
    pub(super) vm_size: String,
    pub(super) virtual_machine_configuration: VirtualMachineConfiguration,
    pub(super) target_dedicated_nodes: u32,
    pub(super) target_low_priority_nodes: u32,
    pub(super) resize_timeout: String,
    pub(super) enable_inter_node_communication: bool,
    pub(super) task_slots_per_node: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) mount_configuration: Vec<PoolMount>,
    pub(super) metadata: Vec<Metadata>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PoolMount {
    pub(super) azure_blob_file_system_configuration: BlobMount,
}

/// A container of blobs as a directory of each node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlobMount {
    pub(super) account_name: String,
    pub(super) container_name: String,
    /// Replaced by the secret when the request is sent.
    pub(super) sas_key: &'static str,
    pub(super) relative_mount_path: &'static str,
    pub(super) blobfuse_options: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VirtualMachineConfiguration {
    pub(super) image_reference: ImageReference,
    #[serde(rename = "nodeAgentSKUId")]
    pub(super) node_agent_sku_id: &'static str,
    pub(super) container_configuration: ContainerConfiguration,
    pub(super) os_disk: OsDisk,
}

#[derive(Debug, Serialize)]
pub(super) struct ImageReference {
    pub(super) publisher: &'static str,
    pub(super) offer: &'static str,
    pub(super) sku: &'static str,
    pub(super) version: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerConfiguration {
    /// The management API spells it `DockerCompatible`.
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) container_image_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) container_registries: Vec<Registry>,
}

#[derive(Debug, Serialize)]
pub(super) struct OsDisk {
    #[serde(rename = "diskSizeGB")]
    pub(super) disk_size_gb: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Registry {
    pub(super) registry_server: String,
    pub(super) username: String,
    /// Replaced by the secret when the request is sent.
    pub(super) password: &'static str,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Metadata {
    name: &'static str,
    value: String,
}

impl Metadata {
    /// Jobs and pools have no tags.
    pub(super) fn of(tags: &Tags) -> Vec<Self> {
        let pairs = [
            ("cudock-run", Some(&tags.run)),
            ("cudock-name", Some(&tags.name)),
            ("cudock-owner", Some(&tags.owner)),
            ("cudock-state", tags.state.as_ref()),
            ("cudock-delete-after", Some(&tags.delete_after)),
        ];
        pairs.into_iter().filter_map(|(name, value)| Some(Self { name, value: value?.clone() })).collect()
    }
}

#[derive(Debug, Serialize)]
pub(super) struct TaskCollection {
    pub(super) value: Vec<Task>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) command_line: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) container_settings: Option<ContainerSettings>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) environment_settings: Vec<Variable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) output_files: Vec<OutputFile>,
    pub(super) constraints: TaskConstraints,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user_identity: Option<UserIdentity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) multi_instance_settings: Option<MultiInstance>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerSettings {
    pub(super) image_name: String,
    pub(super) container_run_options: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Variable {
    pub(super) name: String,
    /// The value; empty for a secret, which is inserted when the request is sent.
    pub(super) value: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutputFile {
    pub(super) file_pattern: String,
    pub(super) destination: OutputDestination,
    pub(super) upload_options: UploadOptions,
}

#[derive(Debug, Serialize)]
pub(super) struct OutputDestination {
    pub(super) container: ContainerDestination,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerDestination {
    pub(super) path: String,
    /// Replaced by the secret when the request is sent.
    pub(super) container_url: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UploadOptions {
    pub(super) upload_condition: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskConstraints {
    pub(super) max_wall_clock_time: String,
    pub(super) max_task_retry_count: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserIdentity {
    pub(super) auto_user: AutoUser,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AutoUser {
    pub(super) scope: &'static str,
    pub(super) elevation_level: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MultiInstance {
    pub(super) number_of_instances: u32,
    pub(super) coordination_command_line: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobPatch {
    pub(super) on_all_tasks_complete: &'static str,
}
