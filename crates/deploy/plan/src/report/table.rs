//! Placements as a table.

use cudock_base::Usd;
use cudock_base::text::format::duration;
use cudock_base::text::table::{Align, TextTable};

use crate::plan::Plan;
use crate::plan::placement::Placement;
use crate::report::format;
use crate::report::listing::Listed;

impl Placement {
    /// The longest cold start of a request.
    pub fn cold_start_text(&self) -> String {
        if self.times.total.is_zero() { "none".to_owned() } else { duration(self.times.total) }
    }
}

/// A column: its title, and its cell in the row of a placement.
type Column = (&'static str, Align, fn(&Listed) -> String);

const COLUMNS: [Column; 4] = [
    ("#", Align::Right, |shown| shown.rank.to_string()),
    ("service", Align::Left, |shown| shown.placement.service.id().to_owned()),
    ("size", Align::Left, |shown| shown.placement.size.clone()),
    ("GPU", Align::Left, |shown| format::gpus(&shown.placement)),
];
/// The number of instances, if any placement has several.
const INSTANCES: fn(&Listed) -> String = |shown| shown.placement.instances.to_string();
const OFFER: [Column; 3] = [
    ("region", Align::Left, |shown| match shown.other_regions {
        0 => shown.placement.region.clone(),
        others => format!("{} +{others}", shown.placement.region),
    }),
    ("priority", Align::Left, |shown| shown.placement.priority.name().to_owned()),
    ("USD/h", Align::Right, |shown| format::hourly(shown.placement.price_per_hour)),
];
const OF_SERVICES: [Column; 3] = [
    ("cold start", Align::Right, |shown| shown.placement.cold_start_text()),
    ("USD/month", Align::Right, |shown| {
        let placement = &shown.placement;
        placement.per_month.unwrap_or(placement.cost.total).rounded()
    }),
    ("USD/million", Align::Right, |shown| {
        shown.placement.per_million.map_or_else(|| "-".to_owned(), Usd::rounded)
    }),
];
const OF_JOBS: [Column; 2] = [
    ("time", Align::Right, |shown| duration(shown.placement.times.total)),
    ("USD", Align::Right, |shown| shown.placement.cost.total.rounded()),
];
const BEST: Column = ("", Align::Left, |shown| shown.best_at.join(", "));

impl Plan<'_> {
    /// The placements, one row each.
    pub fn table(&self, placements: &[Listed]) -> TextTable {
        let several = placements.iter().any(|shown| shown.placement.instances > 1);
        let instances = if self.serves() { "peak" } else { "instances" };
        let cost: &[Column] = if self.serves() { &OF_SERVICES } else { &OF_JOBS };
        let columns = COLUMNS.into_iter().chain(several.then_some((instances, Align::Right, INSTANCES)));
        let columns: Vec<Column> = columns.chain(OFFER).chain(cost.iter().copied()).chain([BEST]).collect();
        let mut table = TextTable::report(columns.iter().map(|(title, align, _)| (*title, *align)));
        for shown in placements {
            table.row(columns.iter().map(|(_, _, cell)| cell(shown)).collect());
        }
        table
    }
}
