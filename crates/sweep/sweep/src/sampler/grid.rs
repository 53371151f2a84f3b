//! Every combination once.

use serde_json::{Value, json};

use super::combinations::{MAX_COMBINATIONS, raw_combinations};
use super::interface::{NextTrial, Sampler, SearchedSpace};
use crate::config::problem::{Inexpressible, Problem};
use crate::space::Assignment;

pub(super) struct Grid;

impl Grid {
    pub(super) const SUMMARY: &str = "Every combination once; needs finite parameters.";
}

impl Sampler for Grid {
    fn check(&self, searched: &SearchedSpace<'_>) -> Result<(), Problem> {
        let parameters = &searched.space.parameters;
        let message = match parameters.iter().find(|parameter| parameter.distribution.count().is_none()) {
            Some(endless) => format!(
                "a grid needs finitely many values, and `{}` is continuous: make it a choice, quniform, qloguniform or \
                 randint, or use another sampler",
                endless.name
            ),
            None => match raw_combinations(searched.space).unwrap_or(u64::MAX) {
                0..=MAX_COMBINATIONS => return Ok(()),
                count => format!(
                    "a grid of {count} combinations is too large, the most is {MAX_COMBINATIONS}: remove values, or use \
                     another sampler"
                ),
            },
        };
        Err(Problem::new("sampler", message))
    }

    fn tries_all_combinations(&self) -> bool {
        true
    }

    fn propose(&self, next: &NextTrial<'_>) -> Option<Assignment> {
        next.combinations?.get(next.space, next.id)
    }

    fn azure_ml(&self, _seed: u64) -> Result<Value, Inexpressible> {
        Ok(json!({"type": "grid"}))
    }
}
