//! Flags that override keys of `cudock.toml`: each struct is read from the command line of several verbs.

mod deploy;
mod sweep;
mod values;
mod workload;

pub use deploy::DeployFlags;
pub use sweep::SweepFlags;
pub use values::choice;
pub use workload::WorkloadFlags;
