//! Each parameter at random.

use serde_json::{Value, json};

use super::interface::{NextTrial, Sampler, azure_ml_seed, stream};
use crate::config::problem::Inexpressible;
use crate::space::{Assignment, Space};
use crate::trial_id::TrialId;

pub(super) struct Random;

impl Random {
    pub(super) const SUMMARY: &str = "";
}

impl Sampler for Random {
    fn propose(&self, next: &NextTrial<'_>) -> Option<Assignment> {
        Some(random(next.space, next.seed, next.id))
    }

    fn azure_ml(&self, seed: u64) -> Result<Value, Inexpressible> {
        Ok(json!({"type": "random", "seed": azure_ml_seed(seed)}))
    }
}

pub(super) fn random(space: &Space, seed: u64, trial: TrialId) -> Assignment {
    space.assign(|index, parameter| parameter.distribution.quantile(stream(seed, trial, index).unit()))
}
