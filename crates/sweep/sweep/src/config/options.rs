//! The section `[sweep]` of `cudock.toml`, as it is written.

use std::collections::BTreeMap;

use cudock_base::ByteSize;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::early_termination::EarlyTermination;
use super::limits::SweepLimits;
use super::metrics::MetricOptions;
use super::parameters::ParameterOptions;
use crate::config::choice::Choice;
use crate::objective::Objective;
use crate::sampler::{STARTUP_TRIALS, SamplerKind};

/// A program that is run with different parameters, to find those with the best metrics.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SweepOptions {
    /// The program of a trial and its fixed arguments: `["python", "train.py"]`.
    pub command: Vec<String>,
    /// The image of a trial's container; that of `[workload]` if absent.
    pub image: Option<String>,
    /// The search space: `lr = { loguniform = [1e-4, 1e-1] }`.
    pub parameters: BTreeMap<String, ParameterOptions>,
    /// How parameters reach the program; as arguments if absent.
    pub pass: Option<PassMode>,
    /// What to minimize or maximize: `[{ metric = "accuracy", goal = "maximize" }]`.
    pub objectives: Vec<Objective>,
    /// Where metrics are read from; `name=value` on standard output if absent.
    pub metrics: MetricOptions,
    /// How parameters are chosen; at random if absent.
    pub sampler: Option<Choice<SamplerKind>>,
    /// Seed of the sampler; 0 if absent.
    pub seed: Option<u64>,
    #[schemars(schema_with = "startup_trials")]
    pub startup_trials: Option<u32>,
    /// When a trial that does badly is stopped; never if absent.
    pub early_termination: Option<EarlyTermination>,
    /// What the sweep never exceeds.
    pub limits: SweepLimits,
    /// GPUs of one trial; 1 if absent, 0 for none.
    pub gpus_per_trial: Option<u32>,
    /// Trials that share a GPU; needs `gpu_memory`; 1 if absent.
    pub trials_per_gpu: Option<u32>,
    /// Most GPU memory of one trial: `"10GiB"`.
    pub gpu_memory: Option<ByteSize>,
    /// How often a trial that failed or disappeared is started again; 1 if absent.
    pub retries: Option<u32>,
}

/// How parameters reach the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PassMode {
    /// `--name=value` for each, after the command.
    #[default]
    Arguments,
    /// A variable of the parameter's name for each.
    Environment,
    /// A JSON object in a file whose path is in `CUDOCK_SWEEP_PARAMETERS`.
    File,
}

fn startup_trials(generator: &mut SchemaGenerator) -> Schema {
    STARTUP_TRIALS.schema(&[], generator)
}
