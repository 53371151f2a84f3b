//! How the parameters of trials are chosen.
//!
//! A sampler is a file here (its settings and their keys in `cudock.toml`, checks, proposals, Azure Machine Learning's form)
//! and a line in the list below.

mod combinations;
mod grid;
mod interface;
mod random;
mod sobol;
mod tpe;

use serde_json::Value;

pub(crate) use self::combinations::Combinations;
use self::interface::Sampler;
pub(crate) use self::interface::{NextTrial, Observation, SearchedSpace};
pub use self::sobol::SOBOL_DIMENSIONS;
pub(crate) use self::tpe::STARTUP_TRIALS;
pub use self::tpe::Tpe;
use crate::config::choice::kinds;
use crate::config::problem::{Inexpressible, Problem};
use crate::space::{Assignment, Space};

kinds! {
    /// A sampler, with its settings.
    SamplerKind: Sampler, ("SamplerName", "How parameters are chosen.");
    plain {
        "grid" => grid::Grid,
        "random" => random::Random,
        "sobol" => sobol::Sobol,
    }
    with_settings {
        "tpe" => tpe::Tpe,
    }
}

impl SamplerKind {
    pub(crate) fn check(self, searched: &SearchedSpace<'_>) -> Result<(), Problem> {
        self.interface().check(searched)
    }

    pub(crate) fn tries_all_combinations(self) -> bool {
        self.interface().tries_all_combinations()
    }

    /// The combinations of a space, for a sampler that tries each of them once.
    pub(crate) fn combinations(self, space: &Space) -> Option<Combinations> {
        self.tries_all_combinations().then(|| Combinations::new(space).unwrap_or_default())
    }

    pub(crate) fn propose(self, next: &NextTrial<'_>) -> Option<Assignment> {
        self.interface().propose(next)
    }

    /// The `sampling_algorithm` of Azure Machine Learning's own sweep job.
    pub fn azure_ml(&self, seed: u64) -> Result<Value, Inexpressible> {
        self.interface().azure_ml(seed)
    }
}
