//! Rules that decide whether a size on a service fits the workload.
//!
//! A rule has a code, a check that returns the gap, and a sentence with both figures that is true whether the rule holds
//! or not. The first rule that fails is the reason of a rejection; all that fail add up to its distance.

mod limits;
mod machine;
mod service;
#[cfg(test)]
mod tests;

use crate::context::Case;

/// The gap of a rule without figures.
const NO_MEASURE: u64 = 500_000;
/// What each failed rule adds to a distance; gaps are smaller.
const UNMET: u64 = 1_000_000;

/// A need that a service or size satisfies or not.
pub(crate) struct FitRule {
    pub(crate) code: &'static str,
    /// None if the rule holds, or else the gap in thousandths.
    pub(crate) gap: fn(&Case) -> Option<u64>,
    /// What is available and what is needed.
    pub(crate) describe: fn(&Case) -> String,
}

/// Rules about a service, whatever the size.
pub(crate) const SERVICE_RULES: [FitRule; 4] = service::RULES;
/// Rules about a size on a service, in order of evaluation.
pub(crate) const SIZE_RULES: [FitRule; 17] = rules();

const fn rules() -> [FitRule; 17] {
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

/// The index of the first rule that fails, and the distance of all that fail.
pub(crate) fn judge(rules: &[FitRule], case: &Case) -> Option<(u8, u64)> {
    let mut first = None;
    let mut distance = 0_u64;
    for (index, rule) in (0_u8..).zip(rules) {
        if let Some(gap) = (rule.gap)(case) {
            first = first.or(Some(index));
            distance += UNMET + gap.min(UNMET - 1);
        }
    }
    first.map(|first| (first, distance))
}

/// How much more is needed, in thousandths of what is available.
fn short(has: u64, needed: u64) -> Option<u64> {
    if has >= needed {
        return None;
    }
    let gap = u128::from(needed - has) * 1000 / u128::from(has.max(1));
    Some(u64::try_from(gap).unwrap_or(u64::MAX).clamp(1, UNMET - 1))
}

/// The gap of a rule without figures that holds or not.
fn unless(holds: bool) -> Option<u64> {
    (!holds).then_some(NO_MEASURE)
}

/// The sentence of the first size rule with a code.
pub(crate) fn describe_rule(code: &str, case: &Case) -> String {
    SIZE_RULES.iter().find(|rule| rule.code == code).map(|rule| (rule.describe)(case)).unwrap_or_default()
}
