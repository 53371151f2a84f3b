//! Azure ML's truncation selection.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::decision::Comparison;
use super::history::LastReport;
use super::interface::Policy;
use super::schedule::{DELAY, EvaluationSchedule, INTERVAL};
use crate::config::keys::{Key, Keys};
use crate::config::problem::{Inexpressible, Problem};
use crate::trial_id::TrialId;

/// The best value so far is among the worst percentage of all trials at this step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Truncation {
    pub percentage: f64,
    /// Whether trials that have ended are left out.
    pub exclude_finished: bool,
    pub schedule: EvaluationSchedule,
}

const PERCENTAGE: Key = Key::number(
    "truncation_percentage",
    "the percentage of trials that is stopped at each evaluation: `20`.",
);
const EXCLUDE_FINISHED: Key =
    Key::flag("exclude_finished", "whether ended trials are left out of the comparison; `false` if absent.");

impl Truncation {
    pub(super) const SUMMARY: &str = "Stop the worst percentage.";
    pub(super) const KEYS: &[Key] = &[PERCENTAGE, EXCLUDE_FINISHED, INTERVAL, DELAY];

    pub(super) fn read(keys: &Keys) -> Result<Self, Problem> {
        let percentage = keys.get(PERCENTAGE).ok_or_else(|| {
            PERCENTAGE.problem("`policy = \"truncation\"` needs `truncation_percentage`, such as 20")
        })?;
        let exclude_finished = keys.get(EXCLUDE_FINISHED).unwrap_or(false);
        Ok(Self { percentage, exclude_finished, schedule: EvaluationSchedule::read(keys) })
    }
}

impl Policy for Truncation {
    fn check(&self) -> Result<(), Problem> {
        if !(1.0..=99.0).contains(&self.percentage) {
            let message = format!("`truncation_percentage` is {}: it must be from 1 to 99", self.percentage);
            return Err(PERCENTAGE.problem(message));
        }
        self.schedule.check()
    }

    fn compare(&self, report: &LastReport<'_>) -> Option<Comparison> {
        if !self.schedule.includes(report.step) {
            return None;
        }
        let (own, percentage) = (report.own, self.percentage);
        let is_left_out = |other: TrialId| self.exclude_finished && report.history.is_ended(other);
        let others =
            report.points.iter().filter(|point| point.trial != own.trial && !is_left_out(point.trial));
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
        let value = report.goal.finite(own.best);
        has_value.then_some(Comparison::Truncation { value, not_better, stopped, trials, percentage })
    }

    fn azure_ml(&self) -> Result<Value, Inexpressible> {
        if self.exclude_finished || self.percentage.fract() != 0.0 {
            return Err(Inexpressible::new("it truncates by whole percent, ended trials included"));
        }
        #[allow(clippy::cast_possible_truncation, reason = "a whole number of percent")]
        let percentage = self.percentage as i64;
        let policy = json!({"type": "truncation_selection", "truncation_percentage": percentage});
        Ok(self.schedule.azure_ml(policy))
    }
}
