//! Container Device Interface: edits as files for other engines.
//!
//! A file in `/etc/cdi` or `/var/run/cdi` defines `nvidia.com/gpu=0` for docker, podman and containerd. It describes the
//! driver that was installed when it was generated; [`check_directories`] finds files that no longer match.

mod check;
mod generate;
mod spec;
mod unknown_fields;

pub mod hook;
mod join;

pub use check::{CheckTarget, SpecFinding, check, check_directories};
pub use generate::{CdiOptions, specification};
pub use spec::{CdiDevice, CdiMount, CdiNode, ContainerEdits, Hook, Specification, write};
