//! One container: its configuration, its directory and state, and what is done with it.

pub mod config;
pub(crate) mod container_dir;
pub mod end;
pub mod exec;
pub mod home;
pub mod log;
pub(crate) mod recover;
pub(crate) mod started;
pub(crate) mod state_file;
pub mod status;
pub mod usage;
