//! The keys of `cudock.toml`.

mod data;
mod deploy;
mod needs;
mod rate;
mod serve;
mod spot;
mod start;
mod words;
mod workload;

use serde::Deserialize;

pub use data::{Data, DataAccess};
pub use deploy::{Deploy, DeployTarget, ManagementWanted};
pub use needs::{CapabilityRange, Needs};
pub use rate::{DayRate, RequestRate};
pub use serve::{DeviceChoice, Serve, TryModel};
pub use spot::{SpotChoice, SpotUse};
pub use start::Start;
pub use workload::{Workload, WorkloadKind};

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Manifest {
    /// Name of the project; the folder's if left out.
    pub name: Option<String>,
    /// What runs.
    pub workload: Workload,
    /// What it needs; found by inspection where left out.
    pub needs: Needs,
    /// What it reads.
    pub data: Data,
    /// What a start of it takes.
    pub start: Start,
    /// Where it runs.
    pub deploy: Deploy,
    /// How a model is served.
    pub serve: Serve,
}
