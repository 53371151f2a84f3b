//! Containers on this machine, with the GPUs inside.
//!
//! A container is described by a [`plan::Plan`], made by whoever starts it, and lives in a directory of its own
//! ([`home::ContainerDir`]). One process watches it ([`watch`]): it mounts the container's root in a mount namespace
//! of its own, has libcontainer create the container, keeps what it writes, passes signals on, starts it again where its
//! policy says so, and clears away. There is no daemon: everything that others know of a container they read from its
//! directory, and whether its watcher lives from a lock that the kernel releases.

mod capabilities;
mod cgroup;
pub mod clock;
pub mod copy;
pub mod end;
pub mod engine;
mod enter;
mod error;
pub mod exec;
mod executor;
pub mod flags;
pub mod gpu;
pub mod group;
pub mod headstart;
pub mod home;
mod in_root;
mod init;
mod join;
mod last_words;
mod launch;
mod library_view;
pub mod limits;
pub mod log;
pub mod network;
mod overlay;
pub mod plan;
mod pump;
pub mod reexec;
mod remove;
pub mod rootless;
pub mod signal;
mod spec;
mod started;
pub mod status;
mod sys;
pub mod sysctl;
mod terminal;
mod tree;
pub mod usage;
mod user;
mod visit;
pub mod volume_store;
mod volumes;
mod watch;

pub use capabilities::capabilities;
pub use enter::enter;
pub use error::RuntimeError;
pub use launch::check_seccomp;
pub use overlay::leave_mount_namespace;
pub use watch::{Connection, exit_code, watch};
