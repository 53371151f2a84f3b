//! The decision of a policy, with its arithmetic.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::objective::Goal;
use crate::trial_id::TrialId;

/// The judgment on a trial at one step. Its text is the arithmetic: `0.61 < 0.8 / (1 + 0.2) = 0.667`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The step: the number of the trial's report.
    pub interval: u64,
    pub goal: Goal,
    pub comparison: Comparison,
}

/// The compared values. `value` is that of the trial; none if it has reported no finite value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    Bandit {
        /// The best so far.
        value: Option<f64>,
        best: f64,
        best_trial: TrialId,
        slack: Slack,
        /// None if the slack factor does not apply.
        bound: Option<f64>,
    },
    Median {
        /// The best so far.
        value: Option<f64>,
        median: f64,
        trials: usize,
    },
    Truncation {
        /// The best so far.
        value: Option<f64>,
        /// Other trials that are as bad or worse.
        not_better: usize,
        /// How many of the worst trials are stopped.
        stopped: usize,
        trials: usize,
        percentage: f64,
    },
    Rung {
        /// The last.
        value: Option<f64>,
        /// The value that a trial needs to continue.
        cutoff: f64,
        /// Trials that came there before.
        trials: usize,
        reduction: u32,
    },
    MaxSteps {
        max_steps: u64,
    },
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

impl Decision {
    pub fn is_stop(&self) -> bool {
        let is_worse = |value: Option<f64>, bound: f64| {
            value.is_none_or(|value| self.goal.score(value) < self.goal.score(bound))
        };
        match self.comparison {
            Comparison::Bandit { value, bound, .. } => match bound {
                Some(bound) => is_worse(value, bound),
                None => value.is_none(),
            },
            Comparison::Median { value, median, .. } => is_worse(value, median),
            Comparison::Truncation { not_better, stopped, .. } => not_better < stopped,
            Comparison::Rung { value, cutoff, .. } => is_worse(value, cutoff),
            Comparison::MaxSteps { .. } => true,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match (self.is_stop(), self.goal) {
            (true, Goal::Maximize) => "<",
            (true, Goal::Minimize) => ">",
            (false, Goal::Maximize) => ">=",
            (false, Goal::Minimize) => "<=",
        };
        match self.comparison {
            Comparison::Bandit { value: Some(value), best, slack, bound: Some(bound), .. } => {
                let (value, bound) = distinct(value, bound);
                let best = short(best, 3);
                match (slack, self.goal) {
                    (Slack::Factor(factor), Goal::Maximize) => {
                        write!(f, "{value} {sign} {best} / (1 + {factor}) = {bound}")
                    }
                    (Slack::Factor(factor), Goal::Minimize) => {
                        write!(f, "{value} {sign} {best} * (1 + {factor}) = {bound}")
                    }
                    (Slack::Amount(amount), Goal::Maximize) => {
                        write!(f, "{value} {sign} {best} - {amount} = {bound}")
                    }
                    (Slack::Amount(amount), Goal::Minimize) => {
                        write!(f, "{value} {sign} {best} + {amount} = {bound}")
                    }
                }
            }
            Comparison::Bandit { value: None, best, best_trial, .. } => {
                write!(f, "no finite value so far, and trial {best_trial} has {}", short(best, 3))
            }
            Comparison::Bandit { best, .. } => {
                write!(
                    f,
                    "slack_factor does not apply to a best value of {}, use slack_amount",
                    short(best, 3)
                )
            }
            Comparison::Median { value: Some(value), median, trials } => {
                let (value, median) = distinct(value, median);
                write!(f, "{value} {sign} {median}, the median of the averages of {trials} trials")
            }
            Comparison::Median { value: None, median, trials } => {
                let median = short(median, 3);
                write!(
                    f,
                    "no finite value so far, and the median of the averages of {trials} trials is {median}"
                )
            }
            Comparison::Truncation { value, stopped, trials, percentage, .. } => {
                let value = value.map_or_else(|| "no finite value".to_owned(), |value| short(value, 3));
                let is = if self.is_stop() { "is" } else { "is not" };
                write!(f, "{value} {is} among the worst {stopped} of {trials} trials ({percentage} %)")
            }
            Comparison::Rung { value: Some(value), cutoff, trials, reduction } => {
                let (value, cutoff) = distinct(value, cutoff);
                write!(
                    f,
                    "{value} {sign} {cutoff}, the bound of the best 1/{reduction} of {trials} earlier trials"
                )
            }
            Comparison::Rung { value: None, cutoff, .. } => {
                write!(f, "no finite value, and {} is needed to go on", short(cutoff, 3))
            }
            Comparison::MaxSteps { max_steps } => write!(f, "max_steps = {max_steps} is reached"),
        }
    }
}

/// Two numbers with as many digits as make them differ, three at least.
fn distinct(a: f64, b: f64) -> (String, String) {
    let texts = |digits| (short(a, digits), short(b, digits));
    (3..17).map(texts).find(|(a, b)| a != b).unwrap_or_else(|| texts(17))
}

/// A number with significant digits, but all digits before the point.
fn short(value: f64, digits: usize) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 308")]
    let whole = value.abs().log10().clamp(0.0, 300.0) as usize + 1;
    let precision = digits.max(whole) - 1;
    let rounded: f64 = format!("{value:.precision$e}").parse().unwrap_or(value);
    if rounded == 0.0 || (1e-5..1e15).contains(&rounded.abs()) {
        rounded.to_string()
    } else {
        format!("{rounded:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_those_that_differ_look_different() {
        assert_eq!(short(2.0 / 3.0, 3), "0.667");
        assert_eq!(short(12_345.678, 3), "12346");
        assert_eq!(short(1.234_567e-9, 3), "1.23e-9");
        assert_eq!(short(-0.0, 3), "-0");
        assert_eq!(short(2e20, 3), "2e20");
        assert_eq!(distinct(0.666_61, 0.666_62), ("0.66661".to_owned(), "0.66662".to_owned()));
        assert_eq!(distinct(0.5, 0.5), ("0.5".to_owned(), "0.5".to_owned()));
    }
}
