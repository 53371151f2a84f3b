//! Azure ML's bandit policy.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::decision::{Comparison, Slack};
use super::history::LastReport;
use super::interface::{Policy, above_zero};
use super::schedule::{DELAY, EvaluationSchedule, INTERVAL};
use crate::config::keys::{Key, Keys};
use crate::config::problem::{Inexpressible, Problem};
use crate::objective::Goal;

/// The best value so far is worse than the best of all trials at the same step by more than the slack.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bandit {
    pub slack: Slack,
    pub schedule: EvaluationSchedule,
}

const FACTOR: Key = Key::number("slack_factor", "a trial may be worse than the best by this factor: `0.2`.");
const AMOUNT: Key = Key::number("slack_amount", "a trial may be worse than the best by this amount: `0.05`.");

impl Bandit {
    pub(super) const SUMMARY: &str = "Stop what is worse than the best by more than the slack.";
    pub(super) const KEYS: &[Key] = &[FACTOR, AMOUNT, INTERVAL, DELAY];

    pub(super) fn read(keys: &Keys) -> Result<Self, Problem> {
        let slack = match (keys.get(FACTOR), keys.get(AMOUNT)) {
            (Some(factor), None) => Slack::Factor(factor),
            (None, Some(amount)) => Slack::Amount(amount),
            (None, None) => {
                return Err(FACTOR.problem("`policy = \"bandit\"` needs `slack_factor` or `slack_amount`"));
            }
            (Some(_), Some(_)) => {
                let message = "`slack_factor` and `slack_amount` contradict each other: keep one";
                return Err(AMOUNT.problem(message));
            }
        };
        Ok(Self { slack, schedule: EvaluationSchedule::read(keys) })
    }
}

impl Policy for Bandit {
    fn check(&self) -> Result<(), Problem> {
        match self.slack {
            Slack::Factor(slack) => above_zero(FACTOR, slack)?,
            Slack::Amount(slack) => above_zero(AMOUNT, slack)?,
        }
        self.schedule.check()
    }

    fn compare(&self, report: &LastReport<'_>) -> Option<Comparison> {
        if !self.schedule.includes(report.step) {
            return None;
        }
        let best = report
            .points
            .iter()
            .filter(|point| point.best.is_finite())
            .reduce(|best, point| if point.best > best.best { point } else { best })?;
        let (goal, slack) = (report.goal, self.slack);
        let best_value = goal.unscore(best.best);
        let bound = match (slack, goal) {
            (Slack::Factor(_), _) if best_value <= 0.0 => None,
            (Slack::Factor(factor), Goal::Maximize) => Some(best_value / (1.0 + factor)),
            (Slack::Factor(factor), Goal::Minimize) => Some(best_value * (1.0 + factor)),
            (Slack::Amount(amount), Goal::Maximize) => Some(best_value - amount),
            (Slack::Amount(amount), Goal::Minimize) => Some(best_value + amount),
        };
        let value = goal.finite(report.own.best);
        Some(Comparison::Bandit { value, best: best_value, best_trial: best.trial, slack, bound })
    }

    fn azure_ml(&self) -> Result<Value, Inexpressible> {
        Ok(self.schedule.azure_ml(match self.slack {
            Slack::Factor(factor) => json!({"type": "bandit", "slack_factor": factor}),
            Slack::Amount(amount) => json!({"type": "bandit", "slack_amount": amount}),
        }))
    }
}
