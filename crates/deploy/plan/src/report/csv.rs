//! Placements as CSV: one line each, with the same columns in every report.

use cudock_base::Usd;

use crate::plan::placement::PartKind;
use crate::report::format;
use crate::report::listing::Listed;

/// A line with the names of the columns, and a line for each placement.
pub fn csv(placements: &[Listed]) -> String {
    let parts = PartKind::ALL.map(|kind| format!("usd_{}", kind.name().replace('-', "_"))).join(",");
    let mut lines = vec![format!(
        "rank,service,size,gpu,gpus_per_instance,instances,region,other_regions,priority,management,usd_per_hour,start_s,\
         work_s,lost_s,total_s,usd_total,usd_per_month,usd_per_million,{parts},best_at,quota,price_date,warnings"
    )];
    for shown in placements {
        lines.push(row(shown).iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(","));
    }
    lines.join("\n")
}

fn row(shown: &Listed) -> Vec<String> {
    let placement = &shown.placement;
    let seconds = |time: std::time::Duration| {
        let millis = time.as_millis();
        format!("{}.{:03}", millis / 1000, millis % 1000)
    };
    let money = |amount: Option<Usd>| amount.map(format::exact).unwrap_or_default();
    let whole = f64::from(placement.gpus_per_instance) / 1000.0;
    let mut cells = vec![
        shown.rank.to_string(),
        placement.service.id().to_owned(),
        placement.size.clone(),
        placement.gpu.clone(),
        whole.to_string(),
        placement.instances.to_string(),
        placement.region.clone(),
        shown.other_regions.to_string(),
        placement.priority.name().to_owned(),
        placement.management.name().to_owned(),
        format::exact(placement.price_per_hour),
        seconds(placement.times.start),
        seconds(placement.times.work),
        seconds(placement.times.lost),
        seconds(placement.times.total),
        format::exact(placement.cost.total),
        money(placement.per_month),
        money(placement.per_million),
    ];
    for kind in PartKind::ALL {
        let parts = placement.cost.parts.iter().filter(|part| part.kind == kind);
        cells.push(format::exact(parts.map(|part| part.money).sum()));
    }
    let codes: Vec<&str> = placement.warnings.iter().map(|warning| warning.code).collect();
    cells.extend([
        shown.best_at.join(" "),
        placement.quota.clone().unwrap_or_default(),
        placement.price_date.map(|date| date.to_string()).unwrap_or_default(),
        codes.join(" "),
    ]);
    cells
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
