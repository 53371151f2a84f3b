//! How the parameters of trials are chosen: a function of the seed, the number of the trial and the results so far.

mod grid;
mod sobol;
mod tpe;

use cudock_base::Rng;
use grid::Grid;

use crate::config::{SamplerKind, SweepPlan};
use crate::journal::TrialId;
use crate::space::{Assignment, Space};
pub(crate) use grid::{MAX_COMBINATIONS, raw_combinations};
pub use sobol::SOBOL_DIMENSIONS;

/// A trial that ended with a result. Lower is better.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observation<'a> {
    pub(crate) parameters: &'a Assignment,
    pub(crate) loss: f64,
}

/// A sampler with what it has computed in advance.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    kind: SamplerKind,
    /// Empty unless every combination is tried.
    grid: Grid,
}

impl Sampler {
    pub(crate) fn new(plan: &SweepPlan) -> Self {
        let kind = plan.sampler;
        let grid = if kind == SamplerKind::Grid { Grid::new(&plan.space) } else { None };
        Self { kind, grid: grid.unwrap_or_default() }
    }

    /// The number of trials after which nothing is left to try.
    pub(crate) fn combinations(&self) -> Option<usize> {
        (self.kind == SamplerKind::Grid).then(|| self.grid.len())
    }

    /// The parameters of a trial; none if all combinations were tried.
    pub(crate) fn propose<'a>(
        &self,
        plan: &SweepPlan,
        trial: TrialId,
        observations: impl Iterator<Item = Observation<'a>>,
    ) -> Option<Assignment> {
        let (space, seed) = (&plan.space, plan.seed);
        Some(match self.kind {
            SamplerKind::Grid => return self.grid.combination(space, trial),
            SamplerKind::Random => random(space, seed, trial),
            SamplerKind::Sobol => sobol::point(space, seed, trial),
            SamplerKind::Tpe { startup_trials } => {
                let observations: Vec<_> = observations.collect();
                if observations.len() < usize::try_from(startup_trials).unwrap_or(usize::MAX).max(1) {
                    random(space, seed, trial)
                } else {
                    tpe::propose(space, seed, trial, observations)
                }
            }
        })
    }
}

/// Each parameter has its own stream of random numbers, so that one does not depend on whether another exists.
fn stream(seed: u64, trial: TrialId, parameter: usize) -> Rng {
    Rng::stream(seed, &[u64::from(trial.0), parameter as u64])
}

fn random(space: &Space, seed: u64, trial: TrialId) -> Assignment {
    space.assign(|index, parameter| parameter.distribution.quantile(stream(seed, trial, index).unit()))
}
