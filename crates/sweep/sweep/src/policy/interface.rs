//! The interface of policies.

use serde_json::Value;

use super::decision::Comparison;
use super::history::LastReport;
use crate::config::keys::Key;
use crate::config::problem::{Inexpressible, Problem};

/// Decides when a trial is stopped.
pub(super) trait Policy {
    /// Finds contradictions among the settings.
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// Compares a trial at its last report with others; none if the policy does not look at this step, or there is nothing
    /// to compare with.
    fn compare(&self, report: &LastReport<'_>) -> Option<Comparison>;

    /// The `early_termination` of Azure Machine Learning's own sweep job.
    fn azure_ml(&self) -> Result<Value, Inexpressible>;
}

impl Key {
    /// A problem at this key of `[sweep.early_termination]`.
    pub(super) fn problem(self, message: impl Into<String>) -> Problem {
        Problem::new(&format!("early_termination.{}", self.name), message)
    }
}

pub(super) fn above_zero(key: Key, value: f64) -> Result<(), Problem> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(key.problem(format!("`{}` is {value}: it must be above zero", key.name)))
}
