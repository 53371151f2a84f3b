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
//!
//! A policy is a file here (its settings and their keys in `cudock.toml`, checks, comparison, Azure Machine Learning's form)
//! and a line in the list below; a new comparison is a variant of [`Comparison`].

mod asha;
mod bandit;
mod decision;
mod history;
mod hyperband;
mod interface;
mod median;
mod percentile;
mod rungs;
mod schedule;
mod truncation;

use serde_json::Value;

pub use self::asha::Asha;
pub use self::bandit::Bandit;
pub use self::decision::{Comparison, Decision, Slack};
pub use self::history::History;
pub use self::hyperband::Hyperband;
use self::interface::Policy;
pub use self::median::Median;
pub use self::schedule::EvaluationSchedule;
pub use self::truncation::Truncation;
use crate::config::choice::kinds;
use crate::config::problem::{Inexpressible, Problem};
use crate::trial_id::TrialId;

kinds! {
    /// When a trial is stopped: a policy, with its settings.
    TerminationPolicy: Policy, ("PolicyName", "Policies for early termination.");
    plain {}
    with_settings {
        "bandit" => bandit::Bandit,
        "median" => median::Median,
        "truncation" => truncation::Truncation,
        "asha" => asha::Asha,
        "hyperband" => hyperband::Hyperband,
    }
}

impl TerminationPolicy {
    pub(crate) fn check(&self) -> Result<(), Problem> {
        self.interface().check()
    }

    /// Judges a trial at its last report; none if the policy does not look at this step, or there is nothing to compare
    /// with.
    pub fn evaluate(&self, history: &History, trial: TrialId) -> Option<Decision> {
        let report = history.last_report(trial)?;
        let comparison = self.interface().compare(&report)?;
        Some(Decision { interval: report.step, goal: report.goal, comparison })
    }

    /// The `early_termination` of Azure Machine Learning's own sweep job.
    pub fn azure_ml(&self) -> Result<Value, Inexpressible> {
        self.interface().azure_ml()
    }
}
