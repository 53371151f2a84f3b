//! The workload as it was understood, and its assumptions.

use cudock_plan::Listed;

use super::super::View;
use super::notes::price_dates;
use crate::output::{self, BOLD, DIM, line, styled};

pub(crate) fn print(view: &View<'_>, placements: &[Listed]) {
    let workload = view.plan.workload();
    let title = format!("{}: ", view.title);
    let text = output::wrapped("", &format!("{title}{}", workload.work_text()));
    line(format!("{}{}", styled(BOLD, &title), text.get(title.len()..).unwrap_or_default()));
    let fields = workload.field_texts().into_iter().chain([("prices", prices(view, placements))]);
    for (name, text) in fields {
        if !text.is_empty() {
            line(output::wrapped(&format!("  {name:8} "), &text));
        }
    }
    let assumptions = &workload.assumptions;
    if !assumptions.is_empty() {
        line(format!("\n{}", styled(BOLD, "Assumptions")));
        let column = assumptions.iter().map(|one| one.about.chars().count()).max().unwrap_or(0);
        for one in assumptions {
            let text = format!("{} ({})", one.value, one.source);
            line(styled(DIM, &output::wrapped(&format!("  {:column$}  ", one.about), &text)));
        }
    }
}

/// The age of the prices in the table, and of those that are shown.
fn prices(view: &View<'_>, placements: &[Listed]) -> String {
    let as_of = view.plan.facts().prices().newest();
    let read = price_dates(placements).map(|dates| format!("; those below are of {dates}"));
    let age = view.today.days_since(as_of);
    let days = if age == 1 { "day" } else { "days" };
    format!("USD without tax, newest of {as_of} ({age} {days} old){}", read.unwrap_or_default())
}
