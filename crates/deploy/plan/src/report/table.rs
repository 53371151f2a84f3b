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

impl Plan<'_> {
    /// The placements, one row each.
    pub fn table(&self, placements: &[Listed]) -> TextTable {
        let several = placements.iter().any(|shown| shown.placement.instances > 1);
        let (instances, last) = if self.serves() {
            ("peak", ["cold start", "USD/month", "USD/million"])
        } else {
            ("instances", ["", "time", "USD"])
        };
        let mut table = TextTable::report([
            ("#", Align::Right),
            ("service", Align::Left),
            ("size", Align::Left),
            ("GPU", Align::Left),
            (if several { instances } else { "" }, Align::Right),
            ("region", Align::Left),
            ("priority", Align::Left),
            ("USD/h", Align::Right),
            (last[0], Align::Right),
            (last[1], Align::Right),
            (last[2], Align::Right),
            ("", Align::Left),
        ]);
        for shown in placements {
            let placement = &shown.placement;
            let region = match shown.other_regions {
                0 => placement.region.clone(),
                others => format!("{} +{others}", placement.region),
            };
            let [first, second, third] = if self.serves() {
                let million = placement.per_million.map(Usd::rounded);
                let month = placement.per_month.unwrap_or(placement.cost.total);
                [placement.cold_start_text(), month.rounded(), million.unwrap_or_else(|| "-".to_owned())]
            } else {
                [String::new(), duration(placement.times.total), placement.cost.total.rounded()]
            };
            table.row(vec![
                shown.rank.to_string(),
                placement.service.id().to_owned(),
                placement.size.clone(),
                format::gpus(placement),
                if several { placement.instances.to_string() } else { String::new() },
                region,
                placement.priority.name().to_owned(),
                format::hourly(placement.price_per_hour),
                first,
                second,
                third,
                shown.best_at.join(", "),
            ]);
        }
        table
    }
}
