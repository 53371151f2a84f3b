//! The interface of samplers.

use cudock_base::Rng;
use serde_json::Value;

use super::combinations::Combinations;
use crate::config::limits::SweepLimits;
use crate::config::problem::{Inexpressible, Problem};
use crate::objective::Objective;
use crate::space::{Assignment, Space};
use crate::trial_id::TrialId;

/// Chooses the parameters of trials: a function of the seed, the number of the trial and the results so far.
pub(super) trait Sampler {
    /// Finds contradictions between the sampler and the sweep.
    fn check(&self, _searched: &SearchedSpace<'_>) -> Result<(), Problem> {
        Ok(())
    }

    /// Whether it tries each combination once, after which nothing is left to try.
    fn tries_all_combinations(&self) -> bool {
        false
    }

    /// The parameters of a trial; none if all combinations were tried.
    fn propose(&self, next: &NextTrial<'_>) -> Option<Assignment>;

    /// The `sampling_algorithm` of Azure Machine Learning's own sweep job.
    fn azure_ml(&self, seed: u64) -> Result<Value, Inexpressible>;
}

/// The parts of a sweep that a sampler may not suit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchedSpace<'a> {
    pub(crate) space: &'a Space,
    pub(crate) objectives: &'a [Objective],
    pub(crate) limits: &'a SweepLimits,
}

/// A trial whose parameters are to be chosen.
pub(crate) struct NextTrial<'a> {
    pub(crate) space: &'a Space,
    pub(crate) seed: u64,
    pub(crate) id: TrialId,
    /// Those of the space, for a sampler that tries all of them.
    pub(crate) combinations: Option<&'a Combinations>,
    /// The results so far.
    pub(crate) observations: &'a dyn Fn() -> Vec<Observation<'a>>,
}

/// A trial that ended with a result. Lower is better.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observation<'a> {
    pub(crate) parameters: &'a Assignment,
    pub(crate) loss: f64,
}

/// Each parameter has its own stream of random numbers, so that one does not depend on whether another exists.
pub(super) fn stream(seed: u64, trial: TrialId, parameter: usize) -> Rng {
    Rng::stream(seed, &[u64::from(trial.0), parameter as u64])
}

/// Seeds of Azure Machine Learning have 31 bits.
pub(super) fn azure_ml_seed(seed: u64) -> u64 {
    seed & 0x7fff_ffff
}
