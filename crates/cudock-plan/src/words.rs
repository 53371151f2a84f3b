//! Figures and reasons in words, made when somebody reads them.

use std::collections::BTreeSet;
use std::fmt::Display;

use crate::availability::barred;
use crate::cost::Unfit;
use crate::cost::price::Unpriced;
use crate::machine::{GB, GIB, Machine};
use crate::money::Money;
use crate::offer::RegionId;
use crate::question::Case;
use crate::refusal::Why;
use crate::workload::Priority;

/// Bytes as people count memory: "28 GiB".
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (GIB, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.into_iter().find(|(unit, _)| count >= *unit) {
        Some((unit, name)) => format!("{} {name}", tenths(count, unit)),
        None => format!("{count} B"),
    }
}

/// Bytes as GPUs and meters count them: "16 GB", "0.12 GB".
pub(crate) fn gb(count: u64) -> String {
    if count >= GB || count == 0 {
        return format!("{} GB", tenths(count, GB));
    }
    format!("{} MB", tenths(count, 1_000_000))
}

/// A fraction with one decimal, none if that is zero.
fn tenths(count: u64, unit: u64) -> String {
    let tenths = (u128::from(count) * 10 + u128::from(unit) / 2) / u128::from(unit);
    if tenths % 10 == 0 { (tenths / 10).to_string() } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

/// A machine's GPUs: "8 H100-SXM", "1 T4", "1/6 of an A10".
pub(crate) fn gpus(machine: &Machine) -> String {
    let name = machine.gpu_name();
    match machine.gpus {
        None => format!("an unknown number of {name}"),
        Some(1000) => format!("1 {name}"),
        Some(count) if count >= 1000 => format!("{} {name}", count / 1000),
        Some(share) => format!("1/{} of an {name}", (1000 + share / 2) / share.max(1)),
    }
}

/// A list of names, cut where it gets long.
pub(crate) fn one_of<T: Display>(names: &[T]) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<String> = names.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// A time in the two largest units that say something: "2 h 40 min", "45 s".
pub(crate) fn span(millis: u128) -> String {
    const UNITS: [(u128, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")];
    if millis == 0 {
        return "0 s".to_owned();
    }
    if millis < 10_000 {
        return format!("{}.{} s", millis / 1000, millis % 1000 / 100);
    }
    let first = UNITS.iter().position(|(unit, _)| millis >= *unit).unwrap_or(3);
    let mut rest = millis;
    let mut parts = Vec::new();
    for (unit, name) in UNITS.into_iter().skip(first).take(2) {
        if rest >= unit {
            parts.push(format!("{} {name}", rest / unit));
        }
        rest %= unit;
    }
    parts.join(" ")
}

/// A price with all its digits: "0.526", "21.68", "0.0000056".
pub(crate) fn amount(money: Money) -> String {
    let (whole, rest) = (money.nanos() / 1_000_000_000, money.nanos() % 1_000_000_000);
    let rest = format!("{rest:09}");
    let shown = rest.trim_end_matches('0');
    format!("{whole}.{shown:0<2}")
}

/// An amount with its currency.
pub(crate) fn usd(money: Money) -> String {
    format!("${money}")
}

/// The reason of a refusal that is no rule's.
pub(crate) fn refusal(case: &Case, why: Why) -> String {
    let wishes = &case.workload().wishes;
    let (kind, size) = (case.terms.kind.name(), &case.machine.name);
    match why {
        Why::NoPrice if wishes.regions.is_empty() => "no price of it is known in any region".to_owned(),
        Why::NoPrice => format!("no price of it is known in {}", one_of(&wishes.regions)),
        Why::Unwanted(Priority::Regular) => "only Spot is wanted".to_owned(),
        Why::Unwanted(Priority::Spot) => "Spot is not wanted".to_owned(),
        Why::NotBorne => "the work is not said to bear eviction, which Spot may bring at any time".to_owned(),
        Why::NoSpot if !case.terms.kind.has_spot() => format!("{kind} has no Spot"),
        Why::NoSpot if case.machine.spot == Some(false) => format!("Spot is not offered on {size}"),
        Why::NoSpot => "no Spot price of it is known in the regions allowed".to_owned(),
        Why::Unfit(unfit) => unfit_words(case, unfit),
        Why::Retired(day) => {
            format!("retired on {day}{}", if case.machine.ends_in.is_empty() { "" } else { " there" })
        }
        Why::Ends(day) => format!("ends there on {day}, before the work does"),
        Why::Unpriced(Unpriced::Egress) => "what data costs that leaves this region is not known".to_owned(),
        Why::Unpriced(Unpriced::Transfer) => {
            "what moving the data to this region costs is not known".to_owned()
        }
        Why::Budget(total) => {
            let budget = wishes.budget.map(usd).unwrap_or_default();
            let what = if case.question.serves() { " a month" } else { "" };
            format!("costs {}{what} at least, the budget is {budget}", usd(total))
        }
        Why::NotPublic => format!("not on the list of public regions: {}", regions_with(case, why)),
        Why::RestrictedRegion => {
            format!("access only on request, name the region to include it: {}", regions_with(case, why))
        }
        Why::NotSold => {
            let sold: Vec<&str> = case
                .machine
                .sold_in
                .iter()
                .flat_map(|sold| &sold.regions)
                .copied()
                .map(|region| case.question.catalog.region_name(region))
                .collect();
            format!("available in {} only, not in {}", sold.join(" and "), regions_with(case, why))
        }
        Why::Service(_) | Why::Size(_) => String::new(),
    }
}

/// The regions of a size's offers that are out for a reason, among those allowed.
fn regions_with(case: &Case, why: Why) -> String {
    let question = case.question;
    let offers = question.catalog.offers_of(case.terms.kind, case.size).iter();
    let regions = offers.map(|offer| offer.region).filter(|region| question.allows(*region));
    let out: BTreeSet<RegionId> = regions.filter(|region| barred(case, *region) == Some(why)).collect();
    let names: Vec<&str> = out.into_iter().map(|region| question.catalog.region_name(region)).collect();
    one_of(&names)
}

fn unfit_words(case: &Case, unfit: Unfit) -> String {
    let kind = case.terms.kind.name();
    match unfit {
        Unfit::Beyond => "takes more than a thousand years, or reads more than anybody counts".to_owned(),
        Unfit::Never => "at a speed of 0 it never ends".to_owned(),
        Unfit::Space => {
            let needs = case.workload().data.as_ref().map_or(0, |data| data.bytes);
            format!("{} of local disk, {} of data to copy", bytes(case.machine.local_disk), bytes(needs))
        }
        Unfit::Evictions => {
            "evictions make it take more than ten times as long: checkpoint more often, or leave Spot"
                .to_owned()
        }
        Unfit::Deadline(takes) => {
            let deadline = case.workload().wishes.deadline.map(|deadline| span(deadline.as_millis()));
            format!("takes {}, the deadline is {}", span(takes), deadline.unwrap_or_default())
        }
        Unfit::Lifetime { takes, most } => {
            format!("takes {}, {kind} ends a job after {}", span(takes), span(most))
        }
        Unfit::Instances { needs, most } if most == u64::from(u32::MAX) => {
            format!("needs {needs} instances, more than anybody counts")
        }
        Unfit::Instances { needs, most } => format!("needs {needs} instances, {kind} has {most} at most"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_unit_people_read() {
        assert_eq!(bytes(28 * GIB), "28 GiB");
        assert_eq!(bytes(1536 * GIB), "1.5 TiB");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(gb(80 * GB), "80 GB");
        assert_eq!(gb(500_000_000), "500 MB");
        assert_eq!(gb(u64::MAX), "18446744073.7 GB");
    }

    #[test]
    fn times_have_two_units_at_most() {
        assert_eq!(span(9_600_000), "2 h 40 min");
        assert_eq!(span(45_000), "45 s");
        assert_eq!(span(1_200), "1.2 s");
        assert_eq!(span(3_600_000), "1 h");
        assert_eq!(span(90_061_000), "1 d 1 h");
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(one_of(&["a", "b"]), "a, b");
        assert_eq!(one_of(&[1, 2, 3, 4, 5, 6, 7, 8]), "1, 2, 3, 4, 5, 6 and 2 more");
    }
}
