//! The plan of a sweep: the section `[sweep]` of `cudock.toml`, validated and with all defaults
//! filled in.

use serde::{Deserialize, Serialize};

use super::limits::{SweepLimits, SweepLimitsRecord};
use super::metrics::MetricSource;
use super::options::PassMode;
use crate::objective::Objective;
use crate::parameter_value::ParameterValue;
use crate::policy::TerminationPolicy;
use crate::sampler::SamplerKind;
use crate::space::{Distribution, Space};

/// A validated sweep. The journal keeps it, so a sweep is resumed as it was created, whatever became of `cudock.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepPlan {
    pub name: String,
    pub command: Vec<String>,
    /// The image of a trial's container; none to run trials as processes.
    pub image: Option<String>,
    pub space: Space,
    /// The parameter that chooses the size of the trial's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    pub pass: PassMode,
    /// One or more; early termination and TPE need exactly one.
    pub objectives: Vec<Objective>,
    pub metrics: MetricSource,
    pub sampler: SamplerKind,
    pub seed: u64,
    pub policy: Option<TerminationPolicy>,
    #[serde(with = "SweepLimitsRecord")]
    pub limits: SweepLimits,
    pub gpus_per_trial: u32,
    /// More than one only with `gpu_memory`.
    pub trials_per_gpu: u32,
    /// Maximum GPU memory of one trial in bytes.
    pub gpu_memory: Option<u64>,
    /// How often a trial that failed or was lost is started again.
    pub retries: u32,
}

impl SweepPlan {
    /// The sizes that trials choose from.
    pub fn sizes(&self) -> Vec<&str> {
        let parameter = self.space.parameters.iter().find(|one| self.machine.as_ref() == Some(&one.name));
        let values = match parameter.map(|parameter| &parameter.distribution) {
            Some(Distribution::Choice(values)) => values.as_slice(),
            _ => &[],
        };
        values.iter().filter_map(ParameterValue::as_text).collect()
    }
}
