//! Successive halving: decisions at a few steps (rungs) that are powers of the reduction factor apart.

use super::decision::Comparison;
use super::history::{LastReport, Point};
use super::percentile::percentile;
use crate::config::keys::Key;
use crate::config::problem::{Inexpressible, Problem};
use crate::trial_id::TrialId;

pub(super) const MIN_STEPS: Key = Key::count("min_steps", "reports before the first decision; 1 if absent.");
pub(super) const MAX_STEPS: Key = Key::count("max_steps", "reports after which a trial is done.");
pub(super) const REDUCTION: Key = Key::count32(
    "reduction_factor",
    "one in this many trials goes on; 4 for asha and 3 for hyperband if absent.",
);
pub(super) const KEYS: &[Key] = &[MIN_STEPS, MAX_STEPS, REDUCTION];

pub(super) fn check(min_steps: u64, max_steps: Option<u64>, reduction: u32) -> Result<(), Problem> {
    if min_steps == 0 {
        return Err(MIN_STEPS.problem("`min_steps` must be at least 1"));
    }
    if reduction < 2 {
        let message = "`reduction_factor` must be at least 2: with 1, nothing is ever stopped";
        return Err(REDUCTION.problem(message));
    }
    match max_steps.filter(|max_steps| *max_steps <= min_steps) {
        Some(max_steps) => {
            let message =
                format!("`max_steps` is {max_steps}: it must be above `min_steps`, which is {min_steps}");
            Err(MAX_STEPS.problem(message))
        }
        None => Ok(()),
    }
}

pub(super) fn inexpressible() -> Inexpressible {
    Inexpressible::new("the service has neither ASHA nor Hyperband")
}

/// Whether a step is the first rung times a power of the reduction factor.
pub(super) fn is_rung(step: u64, first: u64, reduction: u32) -> bool {
    let powers =
        std::iter::successors(Some(first.max(1)), |rung| rung.checked_mul(u64::from(reduction.max(2))));
    powers.take_while(|rung| *rung <= step).any(|rung| rung == step)
}

/// Compares the value of a trial with those that came to the rung before it.
pub(super) fn rung(
    report: &LastReport<'_>,
    reduction: u32,
    is_rival: impl Fn(TrialId) -> bool,
) -> Option<Comparison> {
    let own = report.own;
    let counts =
        |point: &&Point| point.trial != own.trial && point.value.is_finite() && is_rival(point.trial);
    let mut scores: Vec<f64> = report.points.iter().filter(counts).map(|point| point.value).collect();
    let trials = scores.len();
    let cutoff = report.goal.unscore(percentile(&mut scores, 1.0 - 1.0 / f64::from(reduction))?);
    Some(Comparison::Rung { value: report.goal.finite(own.value), cutoff, trials, reduction })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_powers_of_the_reduction_factor_apart() {
        let rungs: Vec<u64> = (1..100).filter(|step| is_rung(*step, 2, 3)).collect();
        assert_eq!(rungs, [2, 6, 18, 54]);
    }
}
