//! The verbs for containers, images and volumes.

mod cdi;
mod container;
pub mod docker;
mod hidden;
mod lifecycle;
mod run;

pub use cdi::{CdiArgs, CdiCheckArgs, CdiExtra, CdiGenerateArgs, CdiHookArgs, CdiHookVerb, CdiVerb};
pub(crate) use container::network_values;
pub use container::{FileArgs, GpuArgs, LimitArgs, NetworkArgs, NetworkFlag, ProcessArgs, SecurityArgs};
pub use hidden::{JoinArgs, MonitorArgs};
pub use lifecycle::{
    CpArgs, ImagesArgs, KillArgs, PullArgs, RestartArgs, StartArgs, StatsArgs, TopArgs, VolumeArgs,
    VolumeVerb,
};
pub use run::{
    ContainersArgs, EngineArgs, EngineChoice, ExecArgs, InspectContainerArgs, LogsArgs, PruneArgs, PsArgs,
    RmArgs, RunArgs, StopArgs, WaitArgs,
};
