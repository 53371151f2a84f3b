//! The report as JSON, whose keys keep their names and meaning. See docs/plan.md.

use std::collections::BTreeMap;

use cudock_base::Usd;
use cudock_plan::{Assumption, Breakpoint, Listed, Placement, Plan, Rejection, Work, format};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::View;
use crate::output::{self, TableUsed};

#[derive(Serialize)]
struct PlanReport<'a> {
    schema: u8,
    name: &'a str,
    workload: Value,
    assumptions: &'a [Assumption],
    considered: usize,
    placements: Vec<Value>,
    /// Rank of the cheapest, the fastest and the one with the least management.
    choices: BTreeMap<&'static str, usize>,
    /// Whether the fastest is chosen by published throughput because nothing was measured.
    fastest_by_published_throughput: bool,
    /// Placements that would fit, but that no source lists.
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
#[derive(Debug, Serialize)]
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

/// A placement with `cost.parts` by kind, and the calculation of each part.
fn placement(shown: &Listed) -> Value {
    let placement = &shown.placement;
    let mut object = match serde_json::to_value(placement) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let mut parts: BTreeMap<&str, Usd> = BTreeMap::new();
    for part in &placement.cost.parts {
        *parts.entry(part.kind.name()).or_default() += part.money;
    }
    object.insert(
        "cost".to_owned(),
        json!({
            "total": placement.cost.total,
            "currency": "USD",
            "parts": parts,
            "arithmetic": placement.cost.parts,
        }),
    );
    object.insert("rank".to_owned(), json!(shown.rank));
    object.insert("other_regions".to_owned(), json!(shown.other_regions));
    object.insert("best_at".to_owned(), json!(shown.best_at));
    Value::Object(object)
}

/// The workload as it was understood.
fn workload(view: &View<'_>) -> Value {
    let workload = view.plan.workload();
    let seconds = |time: std::time::Duration| time.as_secs_f64();
    let work = match &workload.work {
        Work::Job { duration } => json!({"kind": "job", "duration_s": seconds(*duration)}),
        Work::Items { items, each, at_once } => {
            json!({"kind": "items", "items": items, "each_s": seconds(*each), "at_once": at_once})
        }
        Work::Sweep { trials, at_once, each } => {
            json!({"kind": "sweep", "trials": trials, "each_s": seconds(*each), "at_once": at_once})
        }
        Work::Serve { load, replica_rate, target_percent } => json!({
            "kind": "serve",
            "requests_per_second_by_hour": load.hours.map(|rate| format::rate(rate).parse::<f64>().unwrap_or(0.0)),
            "replica_rate": format::rate(*replica_rate).parse::<f64>().unwrap_or(0.0),
            "target_percent": target_percent,
        }),
    };
    let gpu = &workload.gpu;
    json!({
        "work": work,
        "gpu_memory_bytes": gpu.memory,
        "gpus_per_instance": gpu.per_instance,
        "instances": gpu.instances,
        "gpus": gpu.models,
        "least_capability": gpu.least_capability.map(|capability| capability.to_string()),
        "greatest_capability": gpu.greatest_capability.map(|capability| capability.to_string()),
        "nvlink": gpu.nvlink,
        "infiniband": gpu.infiniband,
        "begins": workload.begins.to_string(),
    })
}
