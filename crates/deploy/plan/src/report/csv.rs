//! Placements as CSV: one line each, with the same columns in every report.

use std::time::Duration;

use cudock_base::Usd;

use crate::plan::placement::PartKind;
use crate::report::format;
use crate::report::listing::Listed;

/// A column: its name, and its cell in the line of a placement.
type Column = (&'static str, fn(&Listed) -> String);

/// The columns before the parts of the cost.
const COLUMNS: [Column; 18] = [
    ("rank", |shown| shown.rank.to_string()),
    ("service", |shown| shown.placement.service.id().to_owned()),
    ("size", |shown| shown.placement.size.clone()),
    ("gpu", |shown| shown.placement.gpu.clone()),
    ("gpus_per_instance", |shown| (f64::from(shown.placement.gpus_per_instance) / 1000.0).to_string()),
    ("instances", |shown| shown.placement.instances.to_string()),
    ("region", |shown| shown.placement.region.clone()),
    ("other_regions", |shown| shown.other_regions.to_string()),
    ("priority", |shown| shown.placement.priority.name().to_owned()),
    ("management", |shown| shown.placement.management.name().to_owned()),
    ("usd_per_hour", |shown| format::exact(shown.placement.price_per_hour)),
    ("start_s", |shown| seconds(shown.placement.times.start)),
    ("work_s", |shown| seconds(shown.placement.times.work)),
    ("lost_s", |shown| seconds(shown.placement.times.lost)),
    ("total_s", |shown| seconds(shown.placement.times.total)),
    ("usd_total", |shown| format::exact(shown.placement.cost.total)),
    ("usd_per_month", |shown| money(shown.placement.per_month)),
    ("usd_per_million", |shown| money(shown.placement.per_million)),
];

/// The columns after them.
const LAST_COLUMNS: [Column; 4] = [
    ("best_at", |shown| shown.best_at.join(" ")),
    ("quota", |shown| shown.placement.quota.clone().unwrap_or_default()),
    ("price_date", |shown| shown.placement.price_date.map(|date| date.to_string()).unwrap_or_default()),
    ("warnings", |shown| {
        let codes: Vec<&str> = shown.placement.warnings.iter().map(|warning| warning.code).collect();
        codes.join(" ")
    }),
];

/// A line with the names of the columns, and a line for each placement.
pub fn csv(placements: &[Listed]) -> String {
    let name = |(name, _): &Column| (*name).to_owned();
    let parts = PartKind::ALL.map(|kind| format!("usd_{}", kind.name().replace('-', "_")));
    let names = COLUMNS.iter().map(name).chain(parts).chain(LAST_COLUMNS.iter().map(name));
    let mut lines = vec![names.collect::<Vec<_>>().join(",")];
    for shown in placements {
        let cell = |(_, cell): &Column| cell(shown);
        let parts = PartKind::ALL.map(|kind| {
            let parts = shown.placement.cost.parts.iter().filter(|part| part.kind == kind);
            format::exact(parts.map(|part| part.money).sum())
        });
        let cells = COLUMNS.iter().map(cell).chain(parts).chain(LAST_COLUMNS.iter().map(cell));
        lines.push(cells.map(|cell| quoted(&cell)).collect::<Vec<_>>().join(","));
    }
    lines.join("\n")
}

fn seconds(time: Duration) -> String {
    let millis = time.as_millis();
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

fn money(amount: Option<Usd>) -> String {
    amount.map(format::exact).unwrap_or_default()
}

/// Quotes a cell as RFC 4180 requires.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_a_comma_or_a_quote_stays_one_cell() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a, b"), "\"a, b\"");
        assert_eq!(quoted("12\" disk"), "\"12\"\" disk\"");
    }
}
