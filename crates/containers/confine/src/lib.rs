//! Confinement of containers beyond namespaces.
//!
//! Namespaces limit what a container can name; the modules here limit what it can do. Each computes plain data first and
//! hands it to the kernel at the very end:
//!
//! - [`seccomp`]: which system calls are allowed. The default profile follows docker's; [`seccomp::Profile::from_json`]
//!   reads a user's own in docker's format. Both compile to a [`seccomp::Filter`].
//! - [`devices`]: which device nodes can be opened or created, as a BPF program attached to the container's cgroup, so that
//!   a container cannot reach a GPU it was not given by creating its node.
//! - [`seal`]: a handle to our own executable that no container can write to.
//! - [`defaults`]: capabilities, masked and read-only paths.
//!
//! `docs/security.md` describes the threat model.

mod bpf;
mod capability;
pub mod defaults;
pub mod devices;
mod error;
pub mod seal;
pub mod seccomp;

pub use capability::{Capability, CapabilityChange};
pub use error::ConfineError;
