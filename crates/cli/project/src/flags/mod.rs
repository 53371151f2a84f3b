//! Flags that override keys of `cudock.toml`: each struct is read from the command line of several verbs.

mod deploy;
mod sweep;
mod workload;

pub use deploy::DeployFlags;
pub use sweep::SweepFlags;
pub use workload::WorkloadFlags;
