//! Edits written down for other engines, as the Container Device Interface has it.
//!
//! A file in `/etc/cdi` or `/var/run/cdi` tells docker, podman and containerd what `nvidia.com/gpu=0` means. Such a file
//! describes the driver of the day it was written; [`check_directories`] finds those that no longer fit.

mod check;
mod make;
mod spec;
mod spell;

pub mod hook;
mod join;

pub use check::{Finding, Level, Machine, check, check_directories};
pub use make::{Options, specification};
pub use spec::{ContainerEdits, Device, Hook, Mount, Node, Specification};
