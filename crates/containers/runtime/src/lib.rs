//! Containers on this machine, with the GPUs inside.
//!
//! A container is described by a [`plan::Plan`] and has a directory of its own ([`home::ContainerDir`]). One process, its
//! watcher ([`watch`]), mounts the root in a private mount namespace, has libcontainer create the container, writes the log,
//! forwards signals, restarts it and cleans up. There is no daemon: other processes read the status of a container from its
//! directory, and a lock shows whether its watcher runs.

mod capabilities;
mod cgroup;
mod cgroup_mounts;
pub mod cgroup_warmup;
mod container_dir;
pub mod copy;
mod directory;
pub mod end;
pub mod engine;
mod enter;
mod error;
mod error_capture;
pub mod exec;
mod executor;
pub mod flags;
pub mod gpu;
pub mod group;
pub mod home;
mod in_mount_ns;
mod in_root;
mod init;
mod join;
mod launch;
mod library_view;
pub mod limits;
pub mod log;
mod memfd;
pub mod network;
mod overlay;
pub mod plan;
mod recover;
pub mod reexec;
mod remove;
pub mod rootless;
pub mod signal;
mod spec;
mod start;
mod started;
mod state_file;
pub mod status;
mod streams;
mod sys;
pub mod sysctl;
mod terminal;
mod trash;
mod tree;
pub mod usage;
mod user;
mod volume_fill;
pub mod volume_store;
mod volumes;
mod watch;

pub use capabilities::capabilities;
pub use enter::enter;
pub use error::RuntimeError;
pub use launch::check_seccomp;
pub use overlay::leave_mount_namespace;
pub use watch::{Connection, exit_code, verify_gpus, watch};
