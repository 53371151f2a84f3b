//! Whether a size on a service can hold the workload, rule by rule.
//!
//! A rule is one value: its code, a test that gives the gap, and a sentence with both figures that is true whether the
//! rule holds or not. The first rule that does not hold is the reason of a rejection; all that do not hold make its
//! distance.

mod limits;
mod machine;
mod service;
#[cfg(test)]
mod tests;

use crate::question::Case;

/// A gap that no figure measures.
const NO_MEASURE: u64 = 500_000;
/// What each unmet need adds to a distance; gaps stay below.
const UNMET: u64 = 1_000_000;

/// A need that a service or a size meets or does not.
pub(crate) struct Rule {
    pub(crate) code: &'static str,
    /// None if it holds, else by how many thousandths it is missed.
    pub(crate) gap: fn(&Case) -> Option<u64>,
    /// What is there and what is needed.
    pub(crate) words: fn(&Case) -> String,
}

/// Rules that say the same of every size of a service.
pub(crate) const SERVICE_RULES: [Rule; 4] = service::RULES;
/// Rules about a size on a service, in the order they are asked.
pub(crate) const SIZE_RULES: [Rule; 17] = rules();

const fn rules() -> [Rule; 17] {
    let [wanted, model, retired, documented] = machine::KNOWN;
    let [vendor, offered, architecture, capability] = machine::KIND;
    let [memory, count, links, around] = machine::FIGURES;
    let [driver, verdict] = machine::DRIVER;
    let [limits, storage, space] = limits::RULES;
    [
        wanted,
        model,
        retired,
        documented,
        vendor,
        offered,
        architecture,
        capability,
        memory,
        count,
        links,
        around,
        driver,
        verdict,
        limits,
        storage,
        space,
    ]
}

/// The first rule of a list that does not hold, by its place, and the distance of all.
pub(crate) fn judge(rules: &[Rule], case: &Case) -> Option<(u8, u64)> {
    let mut first = None;
    let mut distance = 0_u64;
    for (place, rule) in (0_u8..).zip(rules) {
        if let Some(gap) = (rule.gap)(case) {
            first = first.or(Some(place));
            distance += UNMET + gap.min(UNMET - 1);
        }
    }
    first.map(|first| (first, distance))
}

/// By how many thousandths of what is there `needed` is more.
fn short(has: u64, needed: u64) -> Option<u64> {
    if has >= needed {
        return None;
    }
    let gap = u128::from(needed - has) * 1000 / u128::from(has.max(1));
    Some(u64::try_from(gap).unwrap_or(u64::MAX).clamp(1, UNMET - 1))
}

/// A gap without a measure where something does not hold.
fn unless(holds: bool) -> Option<u64> {
    (!holds).then_some(NO_MEASURE)
}

/// What the first rule of a size with that code says.
pub(crate) fn words_of(code: &str, case: &Case) -> String {
    SIZE_RULES.iter().find(|rule| rule.code == code).map(|rule| (rule.words)(case)).unwrap_or_default()
}
