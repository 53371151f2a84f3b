//! What holds a container in, apart from namespaces.
//!
//! A container shares its kernel with everything else on the machine. Namespaces change what it can name; what it can
//! *do* is held in by the parts here, each of which is plain data first and reaches the kernel at its edge:
//!
//! - [`seccomp`]: which system calls reach the kernel at all. The default profile is ours, after docker's; a user's own,
//!   in docker's form, is read by [`seccomp::Profile::from_json`]. Both become a [`seccomp::Filter`].
//! - [`devices`]: which device nodes can be opened or made, as a program attached to the container's cgroup: a GPU that
//!   was not asked for cannot be reached by making its node.
//! - [`seal`]: a copy of our own executable that nobody in a container can write to.
//! - [`defaults`]: capabilities, hidden and read-only paths, limits.
//!
//! `docs/security.md` says against whom this protects, and against whom it does not.

mod bpf;
mod capability;
pub mod defaults;
pub mod devices;
mod error;
pub mod seal;
pub mod seccomp;

pub use capability::{Capability, CapabilityChange};
pub use error::Error;
