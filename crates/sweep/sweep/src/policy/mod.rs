//! Early termination: whether a trial is stopped when it reports its objective.
//!
//! Policies are pure functions over the reports so far. Steps are counted by reports of the
//! objective: the Nth report of a trial is its step N, whatever number the program gives it. A
//! policy judges a trial when the trial reports, and only then; later reports of others do not
//! change the decision.
//!
//! A value that is not finite is a report without a value: it never becomes the best, does not
//! enter an average, and is worse than any number in a comparison. While no trial has a value, none
//! is stopped.

mod decision;
mod history;
mod rungs;

use cudock_project::Goal;
use serde::{Deserialize, Serialize};

pub use decision::{Comparison, Decision};
pub use history::History;

use crate::journal::TrialId;

/// When a trial is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TerminationPolicy {
    /// Azure ML's bandit policy: the best value so far is worse than the best of all trials at the same step by more than
    /// the slack.
    Bandit { slack: Slack, schedule: EvaluationSchedule },
    /// Azure ML's median stopping: the best value so far is worse than the median, over all trials that have come to this
    /// step, of their averages up to it.
    Median { schedule: EvaluationSchedule },
    /// Azure ML's truncation selection: the best value so far is among the worst percentage of all trials at this step.
    Truncation {
        percentage: f64,
        /// Whether trials that have ended are left out.
        exclude_finished: bool,
        schedule: EvaluationSchedule,
    },
    /// Asynchronous successive halving, as in Ray Tune: at steps `min_steps * reduction^k`, a trial
    /// continues if its value is in the best `1/reduction` of those that came there before it. It
    /// is done at `max_steps`.
    Asha { min_steps: u64, max_steps: Option<u64>, reduction: u32 },
    /// Hyperband with asynchronous successive halving: the same in brackets that begin to stop trials later and later.
    Hyperband { min_steps: u64, max_steps: u64, reduction: u32 },
}

/// How much worse than the best a trial may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Slack {
    /// A share. It has no meaning, and no trial is stopped, while the best value is zero or
    /// negative.
    Factor(f64),
    /// An amount in units of the metric.
    Amount(f64),
}

/// The steps at which a trial is judged: multiples of `interval` that are at least `delay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationSchedule {
    pub interval: u64,
    pub delay: u64,
}

impl EvaluationSchedule {
    /// What `judge` finds at a step; none at a step at which trials are not judged.
    fn at(self, step: u64, judge: impl FnOnce() -> Option<Comparison>) -> Option<Comparison> {
        if step.is_multiple_of(self.interval.max(1)) && step >= self.delay { judge() } else { None }
    }
}

/// Judges a trial at its last report; none if the policy does not look at this step, or there is nothing to compare with.
pub fn evaluate(policy: &TerminationPolicy, history: &History, trial: TrialId) -> Option<Decision> {
    let interval = history.reports(trial);
    let comparison = match *policy {
        TerminationPolicy::Bandit { slack, schedule } => {
            schedule.at(interval, || bandit(history, trial, interval, slack))
        }
        TerminationPolicy::Median { schedule } => schedule.at(interval, || median(history, trial, interval)),
        TerminationPolicy::Truncation { percentage, exclude_finished, schedule } => {
            schedule.at(interval, || truncation(history, trial, interval, percentage, exclude_finished))
        }
        TerminationPolicy::Asha { min_steps, max_steps, reduction } => {
            rungs::asha(history, trial, interval, min_steps, max_steps, reduction)
        }
        TerminationPolicy::Hyperband { min_steps, max_steps, reduction } => {
            rungs::hyperband(history, trial, interval, min_steps, max_steps, reduction)
        }
    };
    Some(Decision { interval, goal: history.goal(), comparison: comparison? })
}

fn bandit(history: &History, trial: TrialId, interval: u64, slack: Slack) -> Option<Comparison> {
    let points = history.at(interval);
    let own = points.iter().rfind(|point| point.trial == trial)?;
    let best = points
        .iter()
        .filter(|point| point.best.is_finite())
        .reduce(|best, point| if point.best > best.best { point } else { best })?;
    let (goal, value) = (history.goal(), best.best);
    let best_value = goal.unscore(value);
    let bound = match (slack, goal) {
        (Slack::Factor(_), _) if best_value <= 0.0 => None,
        (Slack::Factor(factor), Goal::Maximize) => Some(best_value / (1.0 + factor)),
        (Slack::Factor(factor), Goal::Minimize) => Some(best_value * (1.0 + factor)),
        (Slack::Amount(amount), Goal::Maximize) => Some(best_value - amount),
        (Slack::Amount(amount), Goal::Minimize) => Some(best_value + amount),
    };
    Some(Comparison::Bandit {
        value: goal.finite(own.best),
        best: best_value,
        best_trial: best.trial,
        slack,
        bound,
    })
}

fn median(history: &History, trial: TrialId, interval: u64) -> Option<Comparison> {
    let points = history.at(interval);
    let own = points.iter().rfind(|point| point.trial == trial)?;
    let mut means: Vec<f64> = points.iter().map(|point| point.mean).filter(|mean| mean.is_finite()).collect();
    let trials = means.len();
    let median = percentile(&mut means, 0.5)?;
    let goal = history.goal();
    Some(Comparison::Median { value: goal.finite(own.best), median: goal.unscore(median), trials })
}

fn truncation(
    history: &History,
    trial: TrialId,
    interval: u64,
    percentage: f64,
    exclude_finished: bool,
) -> Option<Comparison> {
    let points = history.at(interval);
    let own = points.iter().rfind(|point| point.trial == trial)?;
    let counts = |other: TrialId| other == trial || !(exclude_finished && history.is_ended(other));
    let others = points.iter().filter(|point| point.trial != trial && counts(point.trial));
    let (mut trials, mut not_better, mut has_value) = (1_usize, 0_usize, own.best.is_finite());
    for other in others {
        trials += 1;
        has_value |= other.best.is_finite();
        // A missing value is as bad as another missing one.
        not_better += usize::from(other.best.is_nan() || other.best <= own.best);
    }
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    let stopped = (trials as f64 * percentage / 100.0 + 1e-9).floor() as usize;
    let value = history.goal().finite(own.best);
    has_value.then_some(Comparison::Truncation { value, not_better, stopped, trials, percentage })
}

/// The value below which a share of the values lies, with linear interpolation as in numpy; none without values.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index into a list"
)]
fn percentile(values: &mut [f64], share: f64) -> Option<f64> {
    let position = share * values.len().checked_sub(1)? as f64;
    let (index, fraction) = (position.floor() as usize, position.fract());
    let (_, low, above) = values.select_nth_unstable_by(index, f64::total_cmp);
    let low = *low;
    let next = above.iter().copied().reduce(f64::min).unwrap_or(low);
    Some(if fraction > 0.0 { low + (next - low) * fraction } else { low })
}

/// Scores are values with the sign that makes higher ones better.
pub(crate) trait Score {
    fn score(self, value: f64) -> f64;
    fn unscore(self, score: f64) -> f64;
    /// The value of a score, if there is one.
    fn finite(self, score: f64) -> Option<f64>;
}

impl Score for Goal {
    fn score(self, value: f64) -> f64 {
        match self {
            Self::Maximize => value,
            Self::Minimize => -value,
        }
    }

    fn unscore(self, score: f64) -> f64 {
        self.score(score)
    }

    fn finite(self, score: f64) -> Option<f64> {
        score.is_finite().then(|| self.unscore(score))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_numpy() {
        let percentile = |values: &[f64], share| percentile(&mut values.to_vec(), share);
        assert_eq!(percentile(&[3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(percentile(&[4.0, 1.0, 2.0, 3.0], 0.5), Some(2.5));
        assert_eq!(percentile(&[4.0, 1.0, 2.0, 3.0], 0.75), Some(3.25));
        assert_eq!(percentile(&[7.0], 0.75), Some(7.0));
        assert_eq!(percentile(&[], 0.5), None);
    }
}
