//! Notes about all placements that are shown.

use std::collections::BTreeSet;

use cudock_facts::version::Date;
use cudock_plan::{DEPLOYABLE, Listed, Proof};

use super::super::View;
use super::placement::{describe, price};
use crate::output;

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
            let (name, price) = (describe(&listed.placement), price(view, &listed.placement));
            format!("the first that it does is #{}, {name}: {price}", listed.rank)
        },
    );
    let text = format!("`cudock up` does not deploy to {}; {other}", best.placement.service.name());
    Some(output::wrapped("Deploying: ", &text))
}

/// The day of the prices of some placements, or the first and the last.
pub(crate) fn price_dates(placements: &[Listed]) -> Option<String> {
    let dates: BTreeSet<Date> = placements.iter().filter_map(|listed| listed.placement.price_date).collect();
    let (first, last) = (dates.first()?, dates.last()?);
    Some(if first == last { first.to_string() } else { format!("{first} to {last}") })
}
