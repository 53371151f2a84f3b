//! Hyperband with asynchronous successive halving.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decision::Comparison;
use super::history::LastReport;
use super::interface::Policy;
use super::rungs::{self, MAX_STEPS, MIN_STEPS, REDUCTION};
use crate::config::keys::{Key, Keys};
use crate::config::problem::{Inexpressible, Problem};
use crate::trial_id::TrialId;

/// Asynchronous successive halving in brackets that begin to stop trials later and later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hyperband {
    pub min_steps: u64,
    pub max_steps: u64,
    pub reduction: u32,
}

impl Hyperband {
    pub(super) const SUMMARY: &str = "Several brackets of successive halving.";
    pub(super) const KEYS: &[Key] = rungs::KEYS;

    pub(super) fn read(keys: &Keys) -> Result<Self, Problem> {
        let max_steps = keys.get(MAX_STEPS).ok_or_else(|| {
            MAX_STEPS.problem("`policy = \"hyperband\"` needs `max_steps`: the reports of a complete trial")
        })?;
        Ok(Self {
            min_steps: keys.get(MIN_STEPS).unwrap_or(1),
            max_steps,
            reduction: keys.get(REDUCTION).unwrap_or(3),
        })
    }
}

impl Policy for Hyperband {
    fn check(&self) -> Result<(), Problem> {
        rungs::check(self.min_steps, Some(self.max_steps), self.reduction)
    }

    fn compare(&self, report: &LastReport<'_>) -> Option<Comparison> {
        let Self { min_steps, max_steps, reduction } = *self;
        if report.step >= max_steps {
            return Some(Comparison::MaxSteps { max_steps });
        }
        let brackets = brackets(min_steps, max_steps, reduction);
        let bracket = bracket_of(report.own.trial, &brackets);
        let first = min_steps.saturating_mul(u64::from(reduction).saturating_pow(bracket));
        rungs::is_rung(report.step, first, reduction)
            .then(|| rungs::rung(report, reduction, |other| bracket_of(other, &brackets) == bracket))?
    }

    fn azure_ml(&self) -> Result<Value, Inexpressible> {
        Err(rungs::inexpressible())
    }
}

/// The share of trials of each bracket, as in the paper of L. Li et al. (2018): bracket b begins at `min * reduction^b`
/// steps, and has `ceil((n / s) * reduction^(s - 1))` trials for each of the n brackets, where s counts down from n to 1.
fn brackets(min_steps: u64, max_steps: u64, reduction: u32) -> Vec<f64> {
    let reduction = u64::from(reduction.max(2));
    let starts = std::iter::successors(Some(min_steps.max(1)), |start| start.checked_mul(reduction));
    let count = u64::try_from(starts.take_while(|start| *start <= max_steps).count()).unwrap_or(1).max(1);
    let trials = (1..=count).rev().map(|rounds| {
        let exponent = u32::try_from(rounds - 1).unwrap_or(u32::MAX);
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let trials = count.saturating_mul(reduction.saturating_pow(exponent)).div_ceil(rounds) as f64;
        trials
    });
    trials.collect()
}

/// The bracket of a trial. Multiples of the golden ratio spread the brackets evenly over the numbers of trials.
fn bracket_of(trial: TrialId, brackets: &[f64]) -> u32 {
    const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;
    let mut left = (f64::from(trial.0) * GOLDEN_RATIO).fract() * brackets.iter().sum::<f64>();
    let bracket = brackets.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    u32::try_from(bracket.unwrap_or(brackets.len().saturating_sub(1))).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_have_the_shares_of_the_paper() {
        assert_eq!(brackets(1, 81, 3), [81.0, 34.0, 15.0, 8.0, 5.0]);
        let shares = brackets(1, 81, 3);
        let mut counts = [0; 5];
        for trial in 0..143 {
            if let Some(count) = counts.get_mut(usize::try_from(bracket_of(TrialId(trial), &shares)).unwrap())
            {
                *count += 1;
            }
        }
        for (count, share) in counts.into_iter().zip(shares) {
            assert!((f64::from(count) - share).abs() <= 2.0, "{counts:?}");
        }
    }
}
