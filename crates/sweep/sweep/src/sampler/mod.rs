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
pub(crate) enum Sampler {
    Grid(Grid),
    Random,
    Sobol,
    Tpe { startup_trials: u32 },
}

impl Sampler {
    pub(crate) fn new(plan: &SweepPlan) -> Self {
        match plan.sampler {
            SamplerKind::Grid => Self::Grid(Grid::new(&plan.space).unwrap_or_default()),
            SamplerKind::Random => Self::Random,
            SamplerKind::Sobol => Self::Sobol,
            SamplerKind::Tpe { startup_trials } => Self::Tpe { startup_trials },
        }
    }

    /// The number of trials after which nothing is left to try.
    pub(crate) fn combinations(&self) -> Option<usize> {
        match self {
            Self::Grid(grid) => Some(grid.len()),
            _ => None,
        }
    }

    /// The parameters of a trial; none if all combinations were tried.
    pub(crate) fn propose<'a>(
        &self,
        plan: &SweepPlan,
        trial: TrialId,
        observations: impl Iterator<Item = Observation<'a>>,
    ) -> Option<Assignment> {
        let (space, seed) = (&plan.space, plan.seed);
        Some(match self {
            Self::Grid(grid) => return grid.combination(space, trial),
            Self::Random => random(space, seed, trial),
            Self::Sobol => sobol::point(space, seed, trial),
            Self::Tpe { startup_trials } => {
                let observations: Vec<_> = observations.collect();
                if observations.len() < usize::try_from(*startup_trials).unwrap_or(usize::MAX).max(1) {
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
