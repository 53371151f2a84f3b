//! Workloads and placements as JSON, whose keys keep their names and meaning.

pub mod compare;
pub(crate) mod csv;
pub(crate) mod describe;
pub mod format;
pub(crate) mod listing;
pub(crate) mod size_report;
mod table;
mod workload_text;

use std::collections::BTreeMap;

use cudock_base::Usd;
use cudock_facts::tables::ComputeFormat;
use cudock_facts::version::{Capability, Date};
use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::placement::{Part, Placement};
use crate::report::listing::Listed;
use crate::workload::{Work, Workload};

/// A placement of the list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlacementReport<'a> {
    #[serde(flatten)]
    placement: &'a Placement,
    // After the placement, because it replaces its `cost`.
    cost: PlacementCost<'a>,
    /// Its position, from 1.
    rank: usize,
    /// Number of other regions in which the same is available, at the same or a higher cost.
    other_regions: usize,
    best_at: &'a [&'static str],
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CostReport")]
struct PlacementCost<'a> {
    total: Usd,
    currency: &'static str,
    /// The cost by kind.
    parts: BTreeMap<&'static str, Usd>,
    /// The calculation of each part.
    arithmetic: &'a [Part],
}

impl<'a> PlacementReport<'a> {
    pub fn of(shown: &'a Listed) -> Self {
        let placement = &shown.placement;
        let mut parts: BTreeMap<&'static str, Usd> = BTreeMap::new();
        for part in &placement.cost.parts {
            *parts.entry(part.kind.name()).or_default() += part.money;
        }
        let arithmetic = &placement.cost.parts;
        Self {
            placement,
            cost: PlacementCost { total: placement.cost.total, currency: "USD", parts, arithmetic },
            rank: shown.rank,
            other_regions: shown.other_regions,
            best_at: &shown.best_at,
        }
    }
}

/// The workload as it was understood.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkloadReport<'a> {
    work: &'a Work,
    gpu_memory_bytes: u64,
    gpus_per_instance: u32,
    instances: u32,
    /// Allowed GPUs; any if empty.
    gpus: &'a [String],
    least_capability: Option<Capability>,
    greatest_capability: Option<Capability>,
    precision: Option<ComputeFormat>,
    nvlink: bool,
    infiniband: bool,
    begins: Date,
}

impl<'a> WorkloadReport<'a> {
    pub fn of(workload: &'a Workload) -> Self {
        let gpu = &workload.gpu;
        Self {
            work: &workload.work,
            gpu_memory_bytes: gpu.memory,
            gpus_per_instance: gpu.per_instance,
            instances: gpu.instances,
            gpus: &gpu.models,
            least_capability: gpu.least_capability,
            greatest_capability: gpu.greatest_capability,
            precision: gpu.precision,
            nvlink: gpu.nvlink,
            infiniband: gpu.infiniband,
            begins: workload.begins,
        }
    }
}
