//! The report as JSON, whose keys keep their names and meaning. See docs/plan.md.

use std::collections::BTreeMap;

use cudock_base::Usd;
use cudock_plan::{
    Assumption, Breakpoint, Listed, Placement, PlacementReport, Plan, Rejection, WorkloadReport,
};
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
    /// Rank of the cheapest, the fastest, the one with the least management, and where `cudock up` does not deploy to the
    /// service of the first, of the first that it does deploy.
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
pub(crate) struct Relaxed {
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
    pub(crate) fn of(plan: &Plan<'_>) -> Vec<Self> {
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
pub(crate) struct Extras<'a> {
    pub(super) unlisted: &'a [Listed],
    pub(super) relaxed: &'a [Relaxed],
    pub(super) crossovers: Option<&'a [Breakpoint]>,
    pub(super) tables: &'a [TableUsed],
}

pub(crate) fn print(view: &View<'_>, placements: &[Listed], extras: &Extras<'_>) {
    let choices = placements.iter().flat_map(|shown| shown.best_at.iter().map(|name| (*name, shown.rank)));
    output::json(&PlanReport {
        schema: 1,
        name: view.title,
        workload: sorted(&WorkloadReport::of(view.plan.workload())),
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

fn placement(shown: &Listed) -> Value {
    sorted(&PlacementReport::of(shown))
}

/// A part of the report with its keys in alphabetical order.
fn sorted(part: &impl Serialize) -> Value {
    serde_json::to_value(part).unwrap_or_default()
}
