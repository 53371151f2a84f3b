//! The steps at which Azure ML's policies judge trials.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::keys::{Key, Keys};
use crate::config::problem::Problem;

/// The steps at which a trial is judged: multiples of `interval` that are at least `delay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationSchedule {
    pub interval: u64,
    pub delay: u64,
}

pub(super) const INTERVAL: Key =
    Key::count("evaluation_interval", "evaluate at every Nth report; 1 if absent.");
pub(super) const DELAY: Key =
    Key::count("delay_evaluation", "do not evaluate before the Nth report; 0 if absent.");

impl EvaluationSchedule {
    pub(super) fn read(keys: &Keys) -> Self {
        Self { interval: keys.get(INTERVAL).unwrap_or(1), delay: keys.get(DELAY).unwrap_or(0) }
    }

    pub(super) fn check(self) -> Result<(), Problem> {
        match self.interval {
            0 => Err(INTERVAL.problem("`evaluation_interval` must be at least 1")),
            _ => Ok(()),
        }
    }

    pub(super) fn includes(self, step: u64) -> bool {
        step.is_multiple_of(self.interval.max(1)) && step >= self.delay
    }

    /// Adds the schedule to a policy of Azure Machine Learning.
    pub(super) fn azure_ml(self, mut policy: Value) -> Value {
        if let Value::Object(fields) = &mut policy {
            fields.insert("evaluation_interval".to_owned(), json!(self.interval));
            fields.insert("delay_evaluation".to_owned(), json!(self.delay));
        }
        policy
    }
}
