//! Compares placements part by part, and finds where the cheaper one changes.

use cudock_base::Usd;
use cudock_base::text::format::duration;
use cudock_base::text::table::{Align, TextTable};
use cudock_plan::report::compare::{Candidate, label};
use cudock_plan::report::format;
use cudock_plan::{Breakpoint, PartKind, Placement, Plan, Scan};
use schemars::JsonSchema;
use serde::Serialize;

use super::text::chart::print_breakpoints;
use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, DIM, RED, line, styled};

/// The report of `--compare` as JSON.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CompareReport<'a> {
    schema: u8,
    name: &'a str,
    compared: Vec<Compared<'a>>,
    crossovers: Vec<Breakpoint>,
}

#[derive(Serialize, JsonSchema)]
struct Compared<'a> {
    asked: &'a str,
    placement: Option<&'a Placement>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    why_not: Vec<String>,
}

pub(crate) fn text(plan: &Plan<'_>, names: &[String]) -> Result<Outcome, Failure> {
    let candidates = plan.candidates(names)?;
    output::table(&table(plan, &candidates));
    for (index, candidate) in candidates.iter().enumerate().filter(|(_, one)| one.placement.is_none()) {
        let name = format!("{} {}", label(index), candidate.name);
        line(format!("\n{} {}", styled(RED, "rejected"), styled(BOLD, &name)));
        for text in plan.rejection_reasons(candidate) {
            line(output::wrapped("  ", &text));
        }
    }
    let scan = Scan::new(plan.workload());
    let breakpoints = plan.candidate_breakpoints(&scan, &candidates);
    print_breakpoints("Where the cheaper one changes", &breakpoints, "nowhere");
    let (low, high) = scan.bounds();
    let range = format!("  searched from {} to {}", scan.describe(low), scan.describe(high));
    line(styled(DIM, &range));
    Ok(outcome(&candidates))
}

pub(crate) fn json(plan: &Plan<'_>, title: &str, names: &[String]) -> Result<Outcome, Failure> {
    let candidates = plan.candidates(names)?;
    let compared = candidates.iter().map(|candidate| Compared {
        asked: candidate.name,
        placement: candidate.placement.as_ref(),
        why_not: if candidate.placement.is_some() { Vec::new() } else { plan.rejection_reasons(candidate) },
    });
    let compared = compared.collect();
    let crossovers = plan.candidate_breakpoints(&Scan::new(plan.workload()), &candidates);
    output::json(&CompareReport { schema: 1, name: title, compared, crossovers });
    Ok(outcome(&candidates))
}

fn outcome(candidates: &[Candidate<'_>]) -> Outcome {
    if candidates.iter().all(|candidate| candidate.placement.is_some()) { Outcome::Yes } else { Outcome::No }
}

/// A column for each candidate, a row for each figure.
fn table(plan: &Plan<'_>, candidates: &[Candidate<'_>]) -> TextTable {
    let mut table = TextTable::report([("", Align::Left)]);
    for index in 0..candidates.len() {
        table.column(label(index), Align::Right);
    }
    let mut add = |name: &str, cell: &dyn Fn(&Placement) -> String| {
        let cells: Vec<String> = candidates
            .iter()
            .map(|one| one.placement.as_ref().map_or_else(|| "-".to_owned(), cell))
            .collect();
        if cells.iter().any(|cell| !cell.is_empty() && cell != "-") {
            table.row(std::iter::once(name.to_owned()).chain(cells).collect());
        }
    };
    add("service", &|placement| placement.service.id().to_owned());
    add("size", &|placement| placement.size.clone());
    add("GPU", &format::gpus);
    add("region", &|placement| placement.region.clone());
    add("priority", &|placement| placement.priority.name().to_owned());
    add("management", &|placement| placement.management.name().to_owned());
    add("instances", &|placement| placement.instances.to_string());
    add("USD/h each", &|placement| format::hourly(placement.price_per_hour));
    add("start", &|placement| duration(placement.times.start));
    if !plan.serves() {
        add("work", &|placement| duration(placement.times.work));
        add("lost", &|placement| {
            if placement.times.lost.is_zero() { String::new() } else { duration(placement.times.lost) }
        });
        add("total time", &|placement| duration(placement.times.total));
    }
    for kind in PartKind::ALL {
        add(kind.name(), &|placement| {
            let parts = placement.cost.parts.iter().filter(|part| part.kind == kind);
            let sum: Usd = parts.map(|part| part.money).sum();
            if sum == Usd::ZERO { String::new() } else { format::dollars(sum) }
        });
    }
    add(if plan.serves() { "per month" } else { "total" }, &|placement| {
        format::dollars(placement.cost.total)
    });
    add("per million", &|placement| placement.per_million.map(format::dollars).unwrap_or_default());
    add("warnings", &|placement| {
        placement.warnings.iter().map(|warning| warning.code).collect::<Vec<_>>().join(" ")
    });
    table
}
