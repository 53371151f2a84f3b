//! Parses the values of `docker run`'s flags, which `cudock run` shares.
//!
//! Each function turns text into a part of a config, so that other front ends can use the same syntax.

mod container;
mod devices;
mod gpus;
mod limits;
mod logs;
mod mounts;
mod network;
mod paths;
mod security;
mod times;
mod values;

pub(crate) use container::is_docker_name;
pub use container::{check_name, default_name, existing_directory};
pub use devices::{Device, cdi_gpus, device};
pub use gpus::{GpuFlags, gpus};
pub(crate) use limits::MIN_MEMORY;
pub use limits::{memory, memory_swap};
pub use logs::log;
pub use mounts::{Sources, mount, tmpfs, volume};
pub(crate) use network::publish_exposed;
pub use network::{add_hosts, automatic_network, ports, sysctls};
pub use paths::{locate_home, path_in_container};
pub use security::{SecurityFlags, adds_capability, security};
pub use times::{duration, point_in_time};
pub use values::{annotations, bytes, cpu_millis, cpuset, labels, restart, ulimit, variables};
