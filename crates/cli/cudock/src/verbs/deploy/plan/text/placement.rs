//! One placement as text.

use anstyle::Style;
use cudock_base::text::format::duration;
use cudock_plan::report::format;
use cudock_plan::{Placement, Priority};

use super::super::View;
use crate::output::{self, line, styled};

/// Prints a text that starts with `first`, in which the label gets a style.
pub(crate) fn print_labeled(style: Style, label: &str, first: &str, text: &str) {
    line(output::wrapped(first, text).replacen(label, &styled(style, label), 1));
}

/// Size, service, region, and whether it is Spot.
pub(crate) fn describe(placement: &Placement) -> String {
    let spot = if placement.priority == Priority::Spot { ", Spot" } else { "" };
    format!("{} on {} in {}{spot}", placement.size, placement.service.name(), placement.region)
}

/// The cost and the duration of a placement.
pub(crate) fn price(view: &View<'_>, placement: &Placement) -> String {
    let total = format::dollars(placement.cost.total);
    if view.plan.serves() {
        let million = placement.per_million.map(format::dollars);
        let million = million.map(|money| format!(" ({money} per million requests)")).unwrap_or_default();
        let wait = match placement.cold_start_text().as_str() {
            "none" => "always up".to_owned(),
            wait => format!("cold starts of {wait}"),
        };
        format!("{total} per month{million}, {wait}")
    } else {
        format!("{total} in {}", duration(placement.times.total))
    }
}
