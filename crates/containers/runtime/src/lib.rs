//! Containers on this machine, with the GPUs inside.
//!
//! A container is described by a [`container::config::ContainerConfig`] and has a directory of its own
//! ([`container::home::ContainerDir`]). One process, its watcher ([`watch()`]), mounts the root in a private mount
//! namespace, has libcontainer create the container, writes the log, forwards signals, restarts it and cleans up. There is
//! no daemon: other processes read the status of a container from its directory, and a lock shows whether its watcher runs.

pub mod cgroup;
pub mod container;
pub mod engine;
mod error;
pub mod files;
pub mod flags;
pub mod group;
pub mod namespace;
pub mod start;
pub mod supervise;
pub mod volumes;

pub use error::{RuntimeError, exit_code};
pub use namespace::enter::enter;
pub use start::capabilities::capabilities;
pub use start::overlay::leave_mount_namespace;
pub use start::seccomp::check_seccomp;
pub use supervise::watch::{Connection, verify_gpus, watch};
