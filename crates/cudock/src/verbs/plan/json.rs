//! The report as JSON, whose keys keep their names and meaning. See docs/plan.md.

use std::collections::BTreeMap;

use cudock_base::Usd;
use cudock_facts::version::{Capability, Date};
use cudock_plan::{Assumption, Breakpoint, Listed, Part, Placement, Plan, Rejection, Work, format};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::View;
use crate::output::{self, TableUsed};

#[derive(Serialize, JsonSchema)]
pub(crate) struct PlanReport<'a> {
    schema: u8,
    name: &'a str,
    #[schemars(with = "WorkloadReport")]
    workload: Value,
    assumptions: &'a [Assumption],
    considered: usize,
    #[schemars(with = "Vec<PlacementReport>")]
    placements: Vec<Value>,
    /// Rank of the cheapest, the fastest and the one with the least management.
    choices: BTreeMap<&'static str, usize>,
    /// Whether the fastest is chosen by published throughput because nothing was measured.
    fastest_by_published_throughput: bool,
    /// Placements that would fit, but that no source lists.
    #[schemars(with = "Vec<PlacementReport>")]
    unlisted: Vec<Value>,
    rejected: &'a [Rejection],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nearest: Vec<&'a Rejection>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    would_fit: &'a [Relaxed],
    #[serde(skip_serializing_if = "Option::is_none")]
    crossovers: Option<&'a [Breakpoint]>,
    tables: &'a [TableUsed],
}

/// What fits with some relaxations.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Relaxed {
    /// The relaxations, as text.
    pub(super) change: String,
    service: &'static str,
    size: String,
    region: String,
    priority: &'static str,
    total: Usd,
    #[serde(skip)]
    pub(super) placement: Placement,
}

impl Relaxed {
    pub(super) fn of(plan: &Plan<'_>) -> Vec<Self> {
        let report = |relaxed: cudock_plan::Relaxed| {
            let changes = relaxed.relaxations.iter().map(|one| one.describe(plan.workload()));
            let placement = relaxed.placement;
            Self {
                change: changes.collect::<Vec<_>>().join(", and "),
                service: placement.service.id(),
                size: placement.size.clone(),
                region: placement.region.clone(),
                priority: placement.priority.name(),
                total: placement.cost.total,
                placement,
            }
        };
        plan.relaxed().into_iter().map(report).collect()
    }
}

/// The other parts of the report.
pub(super) struct Extras<'a> {
    pub(super) unlisted: &'a [Listed],
    pub(super) relaxed: &'a [Relaxed],
    pub(super) crossovers: Option<&'a [Breakpoint]>,
    pub(super) tables: &'a [TableUsed],
}

pub(super) fn print(view: &View<'_>, placements: &[Listed], extras: &Extras<'_>) {
    let choices = placements.iter().flat_map(|shown| shown.best_at.iter().map(|name| (*name, shown.rank)));
    output::json(&PlanReport {
        schema: 1,
        name: view.title,
        workload: workload(view),
        assumptions: &view.plan.workload().assumptions,
        considered: view.plan.considered(),
        placements: placements.iter().map(placement).collect(),
        choices: choices.collect(),
        fastest_by_published_throughput: view.plan.compares_published(),
        unlisted: extras.unlisted.iter().map(placement).collect(),
        rejected: view.plan.rejected(),
        nearest: if placements.is_empty() { view.plan.nearest() } else { Vec::new() },
        would_fit: extras.relaxed,
        crossovers: extras.crossovers,
        tables: extras.tables,
    });
}

/// A placement of the list.
#[derive(Serialize, JsonSchema)]
struct PlacementReport<'a> {
    #[serde(flatten)]
    placement: &'a Placement,
    // After the placement, because it replaces its `cost`.
    cost: CostReport<'a>,
    /// Its position, from 1.
    rank: usize,
    /// In how many other regions the same is available, at the same or a higher cost.
    other_regions: usize,
    best_at: &'a [&'static str],
}

#[derive(Serialize, JsonSchema)]
struct CostReport<'a> {
    total: Usd,
    currency: &'static str,
    /// The cost by kind.
    parts: BTreeMap<&'static str, Usd>,
    /// The calculation of each part.
    arithmetic: &'a [Part],
}

fn placement(shown: &Listed) -> Value {
    let placement = &shown.placement;
    let mut parts: BTreeMap<&'static str, Usd> = BTreeMap::new();
    for part in &placement.cost.parts {
        *parts.entry(part.kind.name()).or_default() += part.money;
    }
    let arithmetic = &placement.cost.parts;
    sorted(&PlacementReport {
        placement,
        cost: CostReport { total: placement.cost.total, currency: "USD", parts, arithmetic },
        rank: shown.rank,
        other_regions: shown.other_regions,
        best_at: &shown.best_at,
    })
}

/// The workload as it was understood.
#[derive(Serialize, JsonSchema)]
struct WorkloadReport<'a> {
    work: WorkReport,
    gpu_memory_bytes: u64,
    gpus_per_instance: u32,
    instances: u32,
    /// Allowed GPUs; any if empty.
    gpus: &'a [String],
    least_capability: Option<Capability>,
    greatest_capability: Option<Capability>,
    nvlink: bool,
    infiniband: bool,
    begins: Date,
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum WorkReport {
    Job { duration_s: f64 },
    Items { items: u64, each_s: f64, at_once: Option<u32> },
    Sweep { trials: u32, each_s: f64, at_once: u32 },
    Serve { requests_per_second_by_hour: [f64; 24], replica_rate: f64, target_percent: u8 },
}

fn workload(view: &View<'_>) -> Value {
    let workload = view.plan.workload();
    let rate = |rate| format::rate(rate).parse().unwrap_or(0.0);
    let work = match &workload.work {
        Work::Job { duration } => WorkReport::Job { duration_s: duration.as_secs_f64() },
        Work::Items { items, each, at_once } => {
            WorkReport::Items { items: *items, each_s: each.as_secs_f64(), at_once: *at_once }
        }
        Work::Sweep { trials, at_once, each } => {
            WorkReport::Sweep { trials: *trials, each_s: each.as_secs_f64(), at_once: *at_once }
        }
        Work::Serve { load, replica_rate, target_percent } => WorkReport::Serve {
            requests_per_second_by_hour: load.hours.map(rate),
            replica_rate: rate(*replica_rate),
            target_percent: *target_percent,
        },
    };
    let gpu = &workload.gpu;
    sorted(&WorkloadReport {
        work,
        gpu_memory_bytes: gpu.memory,
        gpus_per_instance: gpu.per_instance,
        instances: gpu.instances,
        gpus: &gpu.models,
        least_capability: gpu.least_capability,
        greatest_capability: gpu.greatest_capability,
        nvlink: gpu.nvlink,
        infiniband: gpu.infiniband,
        begins: workload.begins,
    })
}

/// A part of the report with its keys in alphabetical order.
fn sorted(part: &impl Serialize) -> Value {
    serde_json::to_value(part).unwrap_or_default()
}
