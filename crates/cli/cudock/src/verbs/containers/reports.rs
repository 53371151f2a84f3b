//! The JSON reports of the verbs for containers, images, volumes and groups.

use std::collections::BTreeMap;

use cudock_deploy::DeploymentSummary;
use cudock_runtime::container::usage::{Process, Usage};
use cudock_runtime::engine::Summary;
use cudock_runtime::engine::builtin::ContainerDetails;
use cudock_runtime::volumes::store::NamedVolume;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
pub(crate) struct PsReport<'a> {
    pub(crate) deployments: &'a [DeploymentSummary],
    pub(crate) containers: &'a [Summary],
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct StatsReport<'a> {
    pub(crate) containers: &'a [Usage],
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct TopReport<'a> {
    pub(crate) processes: &'a [Process],
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ImagesReport {
    pub(crate) images: Vec<CachedImageReport>,
}

/// An image in the cache.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CachedImageReport {
    pub(crate) image: String,
    pub(crate) digest: String,
    /// Size of the layers in bytes, if the manifest is in the cache.
    pub(crate) bytes: Option<u64>,
    /// Whether all layers are in the cache.
    pub(crate) complete: bool,
    /// When it was fetched, in seconds since 1970.
    pub(crate) fetched: u64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct PullReport {
    pub(crate) images: Vec<PulledImage>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct PulledImage {
    pub(crate) image: String,
    /// The number of layers.
    pub(crate) layers: usize,
    /// Size of the layers in bytes.
    pub(crate) bytes: u64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct VolumeReport<'a> {
    pub(crate) volumes: Vec<&'a NamedVolume>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct PruneReport {
    /// The number of layers that were removed.
    pub(crate) layers: usize,
    /// Bytes that were freed.
    pub(crate) bytes: u64,
    /// The number of containers whose control groups were removed.
    pub(crate) control_groups: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct WaitReport<'a> {
    /// Exit codes by the names that were given.
    pub(crate) exit_codes: BTreeMap<&'a str, i32>,
}

/// One container, or a list of several. With `--engine docker` or `podman`, containers are as that engine reports them.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used, because other engines report other keys")]
pub(crate) enum InspectContainerReport {
    One(Box<ContainerDetails>),
    Several { containers: Vec<ContainerDetails> },
}
