//! The values of `docker run`'s flags, and what they mean for a container.
//!
//! `cudock run` takes the same flags. Everything here is a function from text to a part of a plan, so that other front ends
//! can use the same syntax.

mod container;
mod devices;
pub mod docker;
mod gpus;
mod limits;
mod mounts;
mod network;
mod paths;
mod security;
mod times;
mod values;

pub use container::{check_name, default_name, existing_directory};
pub use devices::{Device, cdi_gpus, device};
pub use gpus::{GpuFlags, gpus};
pub use limits::{memory, memory_swap};
pub use mounts::{Sources, mount, tmpfs, volume};
pub use network::{add_host, automatic_network, sysctls};
pub use paths::{locate_home, path_in_container};
pub use security::{SecurityFlags, security};
pub use times::{duration, point_in_time};
pub use values::{bytes, cpu_millis, cpuset, labels, restart, ulimit, variables};
