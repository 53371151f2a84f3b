//! Successive halving: decisions at a few steps (rungs) that are powers of the reduction factor apart.

use super::history::{History, Point};
use super::{Comparison, Score, percentile};
use crate::journal::TrialId;

pub(super) fn asha(
    history: &History,
    trial: TrialId,
    interval: u64,
    min_steps: u64,
    max_steps: Option<u64>,
    reduction: u32,
) -> Option<Comparison> {
    if let Some(max_steps) = max_steps.filter(|max_steps| interval >= *max_steps) {
        return Some(Comparison::MaxSteps { max_steps });
    }
    is_rung(interval, min_steps, reduction).then(|| rung(history, trial, interval, reduction, |_| true))?
}

pub(super) fn hyperband(
    history: &History,
    trial: TrialId,
    interval: u64,
    min_steps: u64,
    max_steps: u64,
    reduction: u32,
) -> Option<Comparison> {
    if interval >= max_steps {
        return Some(Comparison::MaxSteps { max_steps });
    }
    let brackets = brackets(min_steps, max_steps, reduction);
    let bracket = bracket_of(trial, &brackets);
    let first = min_steps.saturating_mul(u64::from(reduction).saturating_pow(bracket));
    is_rung(interval, first, reduction)
        .then(|| rung(history, trial, interval, reduction, |other| bracket_of(other, &brackets) == bracket))?
}

/// Whether a step is the first rung times a power of the reduction factor.
fn is_rung(step: u64, first: u64, reduction: u32) -> bool {
    let powers =
        std::iter::successors(Some(first.max(1)), |rung| rung.checked_mul(u64::from(reduction.max(2))));
    powers.take_while(|rung| *rung <= step).any(|rung| rung == step)
}

/// Compares the value of a trial with those that came to the rung before it.
fn rung(
    history: &History,
    trial: TrialId,
    interval: u64,
    reduction: u32,
    is_rival: impl Fn(TrialId) -> bool,
) -> Option<Comparison> {
    let points = history.at(interval);
    let own = points.iter().rfind(|point| point.trial == trial)?;
    let counts = |point: &&Point| point.trial != trial && point.value.is_finite() && is_rival(point.trial);
    let mut scores: Vec<f64> = points.iter().filter(counts).map(|point| point.value).collect();
    let trials = scores.len();
    let cutoff = percentile(&mut scores, 1.0 - 1.0 / f64::from(reduction))?;
    let goal = history.goal();
    Some(Comparison::Rung { value: goal.finite(own.value), cutoff: goal.unscore(cutoff), trials, reduction })
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
    fn rungs_are_powers_of_the_reduction_factor_apart() {
        let rungs: Vec<u64> = (1..100).filter(|step| is_rung(*step, 2, 3)).collect();
        assert_eq!(rungs, [2, 6, 18, 54]);
    }

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
