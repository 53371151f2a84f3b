//! The workload to run, independent of the service that runs it.

mod checkpoints;
mod existing;
mod group_losses;
mod outputs;
mod placed;
mod requested;
mod source;

use cudock_facts::services::AzureService;
use std::time::Duration;

use cudock_base::{Secret, Timestamp, Usd};

use crate::deployment::WorkShape;

pub use checkpoints::{BlobContainer, Checkpoints};
pub use existing::{ExistingDetails, ExistingResources, ProfileDetails};
pub use outputs::Outputs;
pub use placed::SpecPlacement;
pub use source::SpecOptions;

/// Everything that the translation to a service reads. Names and times are chosen before, so that it is a pure function.
#[derive(Debug, Clone, PartialEq)]
pub struct DeploymentSpec {
    /// The user's name for it.
    pub name: String,
    /// Unique for each deployment: 12 lower-case hexadecimal digits. Part of all names and tags.
    pub run_id: String,
    pub subscription: String,
    pub region: String,
    pub service: AzureService,
    /// The size or workload profile; none for CPU work on services that need none.
    pub size: Option<String>,
    pub gpus: u32,
    pub cpus: f64,
    pub memory_gib: f64,
    pub instances: u32,
    pub is_spot: bool,
    /// Price per hour of all instances.
    pub price_per_hour: Usd,
    pub image: String,
    /// Program and arguments; those of the image if empty.
    pub command: Vec<String>,
    pub variables: Vec<SpecVariable>,
    pub registry: Option<RegistryAccess>,
    pub work: WorkKind,
    /// When everything is deleted by the cloud itself.
    pub expires: Timestamp,
    /// The GPUs may be idle this long.
    pub idle: Option<Duration>,
    pub checkpoints: Option<Checkpoints>,
    pub outputs: Option<Outputs>,
    pub existing: ExistingResources,
    /// The user who deploys, as in the `cudock-owner` tag.
    pub owner: String,
    /// The state directory whose journal knows the deployment, as in the `cudock-state` tag.
    pub state: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkKind {
    /// Serves requests on a port until it is deleted.
    Serve { port: u16, ready_path: Option<String>, is_public: bool },
    /// Ends by itself; one task for each item, or one for all. An item is a list of further arguments. The time limit is
    /// that of one task.
    Job { items: Vec<Vec<String>>, concurrent: u32, time_limit: Duration, retries: u32 },
    /// Processes on several nodes that work together.
    MultiNode { nodes: u32, processes_per_node: u32, time_limit: Duration },
}

impl WorkKind {
    /// The work without its content.
    pub(crate) fn shape(&self) -> WorkShape {
        match self {
            Self::Serve { port, is_public, .. } => WorkShape::Serve { port: *port, is_public: *is_public },
            Self::Job { items, .. } => {
                WorkShape::Job { tasks: u32::try_from(items.len().max(1)).unwrap_or(u32::MAX) }
            }
            Self::MultiNode { nodes, .. } => WorkShape::MultiNode { nodes: *nodes },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecVariable {
    Plain { name: String, value: String },
    Secret { name: String, value: Secret },
}

/// How the service pulls the image from a private registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryAccess {
    /// A user-assigned identity with the right to pull, by its resource id.
    Identity {
        server: String,
        identity: String,
    },
    Password {
        server: String,
        username: String,
        password: Secret,
    },
}
