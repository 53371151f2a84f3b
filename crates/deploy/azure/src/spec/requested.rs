//! What a container of a group requests.

use cudock_group::{Container, RequestedGpu};

/// The GPU that a container requests.
pub(super) fn requested_gpu(container: &Container) -> Option<&RequestedGpu> {
    container.resources.as_ref()?.gpu.as_ref()
}

/// The processors and GiB of memory that a container requests.
pub(super) fn requested_capacity(container: &Container) -> Option<(f64, f64)> {
    let resources = container.resources.as_ref()?;
    Some((f64::from(resources.cpu_millis) / 1000.0, gib(resources.memory_bytes)))
}

#[allow(clippy::cast_precision_loss, reason = "memory in GiB, to a part in a million")]
pub(super) fn gib(bytes: u64) -> f64 {
    (bytes / (1 << 10)) as f64 / f64::from(1 << 20)
}
