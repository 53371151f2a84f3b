//! The default report: the best placement, a few alternatives, and notes. `--verbose` prints the rest.

use std::collections::BTreeSet;

use cudock_base::text::format::thousands;
use cudock_facts::finding::Severity;
use cudock_facts::version::Date;
use cudock_plan::report::format;
use cudock_plan::{DEPLOYABLE, Listed, Proof, codes};

use super::super::View;
use super::table;
use crate::finding_text::severity_label;
use crate::output::{self, BOLD, DIM, line, styled};

/// How many assumptions are shown without `--verbose`.
const SHOWN_ASSUMPTIONS: usize = 4;

const BEST: &str = "Best: ";

pub(crate) fn print(view: &View<'_>, placements: &[Listed]) {
    let Some(best) = placements.first() else { return };
    let placement = &best.placement;
    let headline = format!(
        "{} ({}), {}, {}: {}",
        placement.size,
        format::gpus(placement),
        placement.service.name(),
        placement.region,
        table::price(view, placement)
    );
    table::print_labeled(BOLD, BEST, BEST, &headline);
    line("");
    output::table(&view.plan.table(placements));
    line("");
    print_notes(view, placements);
    print_assumptions(view);
    let rejected = view.plan.considered().saturating_sub(view.plan.ranked().len());
    let dates = price_dates(placements).map(|dates| format!("Prices of {dates} (cudock prices refresh)."));
    let text = format!(
        "{} offers fit, {} do not; reasons: --why SIZE, all: --verbose. {}",
        thousands(&view.plan.ranked().len().to_string()),
        thousands(&rejected.to_string()),
        dates.unwrap_or_default()
    );
    line(styled(DIM, &output::wrapped("", text.trim_end())));
}

/// Notes about the placements shown.
fn print_notes(view: &View<'_>, placements: &[Listed]) {
    order_note(view, placements).into_iter().for_each(line);
    deployable_note(view, placements).into_iter().for_each(line);
    let findings = || placements.iter().flat_map(|listed| &listed.placement.warnings);
    let of_best = |code: &str| {
        let best = placements.iter().take(1).flat_map(|listed| &listed.placement.warnings);
        best.filter(|finding| finding.code == code).flat_map(|finding| &finding.evidence).next()
    };
    if let Some(quota) = of_best(codes::QUOTA) {
        let text = format!("the default quota of GPU families is 0; needed: {}.", quota.detail);
        line(output::wrapped("Before you order: ", &text));
    }
    let mut shown = BTreeSet::new();
    for finding in findings().filter(|finding| finding.severity >= Severity::Warning) {
        if shown.insert(finding.code) {
            let (style, label) = severity_label(finding.severity);
            let text = output::wrapped(&" ".repeat(label.len() + 2), &finding.message);
            line(format!("{}: {}  {}", styled(style, label), text.trim_start(), styled(DIM, finding.code)));
        }
    }
}

/// Why rows are not in the order of their costs, if they are not.
pub(crate) fn order_note(view: &View<'_>, placements: &[Listed]) -> Option<String> {
    let costs = placements.iter().map(|listed| listed.placement.cost.total);
    if costs.is_sorted() {
        return None;
    }
    let alike = placements.chunk_by(|a, b| a.group == b.group).filter(|rows| rows.len() > 1);
    let rows = alike.filter_map(|rows| Some(format!("{}-{}", rows.first()?.rank, rows.last()?.rank)));
    let rows: Vec<String> = rows.collect();
    let time = if view.plan.serves() { "cold start" } else { "time" };
    let alike = (!rows.is_empty()).then(|| {
        let rows = rows.join(", ");
        format!(
            "rows {rows} cost the same within the uncertainty of the estimate, and are ordered by {time}, \
             evidence and management"
        )
    });
    let restricted = placements.iter().any(|listed| listed.placement.proof == Proof::Restricted);
    let restricted = restricted.then(|| "regions that require an access request come last".to_owned());
    let reasons: Vec<String> = alike.into_iter().chain(restricted).collect();
    Some(output::wrapped("Order: ", &format!("{}.", reasons.join("; "))))
}

/// Names the first placement that `cudock up` deploys, if the best one is on a service that it does
/// not deploy to.
pub(crate) fn deployable_note(view: &View<'_>, placements: &[Listed]) -> Option<String> {
    let best = placements.first().filter(|best| !best.placement.service.service().is_deployable())?;
    let other = placements.iter().find(|listed| listed.best_at.contains(&DEPLOYABLE));
    let other = other.map_or_else(
        || "nothing that it deploys to fits".to_owned(),
        |listed| {
            let (name, price) = (table::describe(&listed.placement), table::price(view, &listed.placement));
            format!("the first that it does is #{}, {name}: {price}", listed.rank)
        },
    );
    let text = format!("`cudock up` does not deploy to {}; {other}", best.placement.service.name());
    Some(output::wrapped("Deploying: ", &text))
}

fn print_assumptions(view: &View<'_>) {
    let assumptions = &view.plan.workload().assumptions;
    if assumptions.is_empty() {
        return;
    }
    let values: Vec<String> = assumptions
        .iter()
        .take(SHOWN_ASSUMPTIONS)
        .map(|one| format!("{} {}", one.about.rsplit('.').next().unwrap_or(&one.about), one.value))
        .collect();
    let more = match assumptions.len().saturating_sub(SHOWN_ASSUMPTIONS) {
        0 => String::new(),
        more => format!("; {more} more with --verbose"),
    };
    line(output::wrapped("Assumed: ", &format!("{}{more}.", values.join(", "))));
}

/// The day of the prices of some placements, or the first and the last.
pub(crate) fn price_dates(placements: &[Listed]) -> Option<String> {
    let dates: BTreeSet<Date> = placements.iter().filter_map(|listed| listed.placement.price_date).collect();
    let (first, last) = (dates.first()?, dates.last()?);
    Some(if first == last { first.to_string() } else { format!("{first} to {last}") })
}
