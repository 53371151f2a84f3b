//! Asynchronous successive halving, as in Ray Tune.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decision::Comparison;
use super::history::LastReport;
use super::interface::Policy;
use super::rungs::{self, MAX_STEPS, MIN_STEPS, REDUCTION};
use crate::config::keys::{Key, Keys};
use crate::config::problem::{Inexpressible, Problem};

/// At steps `min_steps * reduction^k`, a trial continues if its value is in the best `1/reduction` of those that came there
/// before it. It is done at `max_steps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asha {
    pub min_steps: u64,
    pub max_steps: Option<u64>,
    pub reduction: u32,
}

impl Asha {
    pub(super) const SUMMARY: &str = "Asynchronous successive halving.";
    pub(super) const KEYS: &[Key] = rungs::KEYS;

    #[allow(clippy::unnecessary_wraps, reason = "the keys of other kinds can be wrong")]
    pub(super) fn read(keys: &Keys) -> Result<Self, Problem> {
        Ok(Self {
            min_steps: keys.get(MIN_STEPS).unwrap_or(1),
            max_steps: keys.get(MAX_STEPS),
            reduction: keys.get(REDUCTION).unwrap_or(4),
        })
    }
}

impl Policy for Asha {
    fn check(&self) -> Result<(), Problem> {
        rungs::check(self.min_steps, self.max_steps, self.reduction)
    }

    fn compare(&self, report: &LastReport<'_>) -> Option<Comparison> {
        if let Some(max_steps) = self.max_steps.filter(|max_steps| report.step >= *max_steps) {
            return Some(Comparison::MaxSteps { max_steps });
        }
        rungs::is_rung(report.step, self.min_steps, self.reduction)
            .then(|| rungs::rung(report, self.reduction, |_| true))?
    }

    fn azure_ml(&self) -> Result<Value, Inexpressible> {
        Err(rungs::inexpressible())
    }
}
