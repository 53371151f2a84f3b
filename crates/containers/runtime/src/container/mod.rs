//! One container: its configuration, its directory and state, and what is done with it.

pub(crate) mod container_dir;
pub mod end;
pub mod exec;
pub mod home;
pub mod log;
pub mod plan;
pub(crate) mod recover;
pub(crate) mod started;
pub(crate) mod state_file;
pub mod status;
pub mod usage;
