//! Describes the machine of an old choice.

use cudock_facts::Facts;
use cudock_facts::tables::Size;
use cudock_facts::version::Capability;
use schemars::JsonSchema;
use serde::Serialize;

use super::price::HourlyPrice;

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MachineGpu {
    pub id: String,
    /// The count; below one is a share.
    pub count: f64,
    /// Memory of each, or of the share.
    pub memory_gb: Option<f64>,
    pub capability: Option<Capability>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OldMachine {
    /// The size, or the GPU of a service.
    pub name: String,
    pub gpu: Option<MachineGpu>,
    /// Virtual processors.
    pub vcpu: Option<u32>,
    /// Main memory.
    pub ram_gib: Option<f64>,
    /// Its price; a meter outlives its size.
    pub price: Option<HourlyPrice>,
}

impl MachineGpu {
    pub(super) fn of(facts: &Facts, size: &Size) -> Option<Self> {
        let id = size.gpu.clone()?;
        let memory_gb = size.gpu_memory_gb.or_else(|| memory_of(facts, &id));
        Some(Self::named(facts, id, size.gpu_count.unwrap_or(1.0), memory_gb))
    }

    pub(super) fn named(facts: &Facts, id: String, count: f64, memory_gb: Option<f64>) -> Self {
        let capability = facts.gpus().find(&id).one().and_then(|gpu| gpu.capability);
        Self { id, count, memory_gb, capability }
    }

    /// The number of GPUs that a program sees: a share is one.
    pub fn devices(&self) -> f64 {
        self.count.max(1.0)
    }
}

/// The memory of a GPU in sizes that have whole ones; the smallest of several.
pub(super) fn memory_of(facts: &Facts, gpu: &str) -> Option<f64> {
    let whole = facts.sizes().size.iter().filter(|size| {
        size.gpu.as_deref() == Some(gpu)
            && size.documented
            && size.gpu_count.is_some_and(|count| count >= 1.0)
    });
    whole.filter_map(|size| size.gpu_memory_gb).min_by(f64::total_cmp)
}
