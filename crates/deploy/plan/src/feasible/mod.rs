//! Rules that decide whether a size on a service fits the workload.
//!
//! A rule has a code, a check that returns the gap, and a sentence with both figures that is true whether the rule holds
//! or not. The first rule that fails is the reason of a rejection; all that fail add up to its distance.

mod limits;
mod machine;
mod service;
#[cfg(test)]
mod tests;

use crate::codes;
use crate::context::Case;

/// The gap of a rule without figures.
const NO_MEASURE: u64 = 500_000;
/// Added to a distance by each failed rule; gaps are smaller.
const UNMET: u64 = 1_000_000;

pub(crate) struct FitRule {
    pub(crate) code: &'static str,
    /// None if the rule holds, or else the gap in thousandths.
    pub(crate) gap: fn(&Case) -> Option<u64>,
    /// Describes what is available and what is needed.
    pub(crate) describe: fn(&Case) -> String,
}

const fn rule(code: &'static str, gap: fn(&Case) -> Option<u64>, describe: fn(&Case) -> String) -> FitRule {
    FitRule { code, gap, describe }
}

/// Rules about a service, whatever the size.
pub(crate) const SERVICE_RULES: [FitRule; 4] = [
    rule(codes::SERVICE_WITHOUT_GPUS, service::has_gpus, service::describe_gpus),
    rule(codes::OTHER_KIND_OF_WORK, service::fits_work, service::describe_work),
    rule(codes::NOT_WANTED, service::allowed, service::describe_allowed),
    rule(codes::SERVICE_LIMIT, service::possible, service::describe_possible),
];

/// Rules about a size on a service, in order of evaluation.
pub(crate) const SIZE_RULES: [FitRule; 18] = [
    rule(codes::NOT_WANTED, machine::allowed, machine::describe_allowed),
    rule(codes::NOT_WANTED, machine::model, machine::describe_model),
    rule(codes::SIZE_RETIRED, machine::retired, machine::describe_retired),
    rule(codes::UNDOCUMENTED_SIZE, machine::documented, machine::describe_documented),
    rule(codes::NOT_NVIDIA, machine::vendor, machine::describe_vendor),
    rule(codes::SIZE_NOT_OFFERED, machine::offered, machine::describe_offered),
    rule(codes::ARCHITECTURE, machine::architecture, machine::describe_architecture),
    rule(codes::CAPABILITY, machine::capability, machine::describe_capability),
    rule(codes::NUMBER_FORMAT, machine::precision, machine::describe_precision),
    rule(codes::GPU_MEMORY, machine::memory, machine::describe_memory),
    rule(codes::GPU_COUNT, machine::count, machine::describe_count),
    rule(codes::INTERCONNECT, machine::links, machine::describe_links),
    rule(codes::MACHINE_TOO_SMALL, machine::machine, machine::describe_machine),
    rule(codes::DRIVER, machine::driver, machine::describe_driver),
    rule(codes::IMAGE_DOES_NOT_RUN, machine::verdict, machine::describe_verdict),
    rule(codes::SERVICE_LIMIT, limits::limits, limits::describe_limits),
    rule(codes::NO_PRICE, limits::known, limits::describe_known),
    rule(codes::MACHINE_TOO_SMALL, limits::space, limits::describe_space),
];

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
