//! Azure ML's median stopping.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::decision::Comparison;
use super::history::LastReport;
use super::interface::Policy;
use super::percentile::percentile;
use super::schedule::{DELAY, EvaluationSchedule, INTERVAL};
use crate::config::keys::{Key, Keys};
use crate::config::problem::{Inexpressible, Problem};

/// The best value so far is worse than the median, over all trials that have come to this step, of their averages up to it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Median {
    pub schedule: EvaluationSchedule,
}

impl Median {
    pub(super) const SUMMARY: &str = "Stop what is worse than the median of the running averages.";
    pub(super) const KEYS: &[Key] = &[INTERVAL, DELAY];

    #[allow(clippy::unnecessary_wraps, reason = "the keys of other kinds can be wrong")]
    pub(super) fn read(keys: &Keys) -> Result<Self, Problem> {
        Ok(Self { schedule: EvaluationSchedule::read(keys) })
    }
}

impl Policy for Median {
    fn check(&self) -> Result<(), Problem> {
        self.schedule.check()
    }

    fn compare(&self, report: &LastReport<'_>) -> Option<Comparison> {
        if !self.schedule.includes(report.step) {
            return None;
        }
        let means = report.points.iter().map(|point| point.mean);
        let mut means: Vec<f64> = means.filter(|mean| mean.is_finite()).collect();
        let trials = means.len();
        let median = report.goal.unscore(percentile(&mut means, 0.5)?);
        Some(Comparison::Median { value: report.goal.finite(report.own.best), median, trials })
    }

    fn azure_ml(&self) -> Result<Value, Inexpressible> {
        Ok(self.schedule.azure_ml(json!({"type": "median_stopping"})))
    }
}
