//! The default report: the best placement, a few alternatives, and notes. `--verbose` prints the rest.

use std::collections::BTreeSet;

use cudock_base::text::format::thousands;
use cudock_facts::finding::Severity;
use cudock_plan::report::format;
use cudock_plan::{Listed, codes};

use super::super::View;
use super::notes::{deployable_note, order_note, price_dates};
use super::placement::{price, print_labeled};
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
        price(view, placement)
    );
    print_labeled(BOLD, BEST, BEST, &headline);
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
