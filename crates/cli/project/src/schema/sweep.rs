//! `[sweep]`: a hyperparameter sweep of `cudock sweep`.
//!
//! Only the notation is defined here. `cudock-sweep` rejects malformed spaces and contradictory limits, with the location
//! from [`ManifestText`](crate::ManifestText).

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{ByteSize, TimeSpan};

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
    pub sampler: Option<SamplerName>,
    /// Seed of the sampler; 0 if absent.
    pub seed: Option<u64>,
    /// Random trials before `tpe` looks at results; 10 if absent.
    pub startup_trials: Option<u32>,
    /// When a trial that does badly is stopped; never if absent.
    pub early_termination: Option<EarlyTermination>,
    /// What the sweep never exceeds.
    pub limits: LimitOptions,
    /// GPUs of one trial; 1 if absent, 0 for none.
    pub gpus_per_trial: Option<u32>,
    /// Trials that share a GPU; needs `gpu_memory`; 1 if absent.
    pub trials_per_gpu: Option<u32>,
    /// Most GPU memory of one trial: `"10GiB"`.
    pub gpu_memory: Option<ByteSize>,
    /// How often a trial that failed or disappeared is started again; 1 if absent.
    pub retries: Option<u32>,
}

/// A parameter: one distribution, and optionally the condition under which it exists.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ParameterOptions {
    /// One of these values: `[16, 32, 64]`.
    pub choice: Option<Vec<ParameterValue>>,
    /// Any number between two: `[min, max]`.
    pub uniform: Option<Vec<f64>>,
    /// A number whose logarithm is uniform: `[min, max]`.
    pub loguniform: Option<Vec<f64>>,
    /// Uniform, rounded to a multiple of a step: `[min, max, step]`.
    pub quniform: Option<Vec<f64>>,
    /// Loguniform, rounded to a multiple of a step: `[min, max, step]`.
    pub qloguniform: Option<Vec<f64>>,
    /// Normally distributed: `[mean, deviation]`.
    pub normal: Option<Vec<f64>>,
    /// A number whose logarithm is normally distributed: `[mean, deviation]` of the logarithm.
    pub lognormal: Option<Vec<f64>>,
    /// Normally distributed, rounded to a multiple of a step: `[mean, deviation, step]`.
    pub qnormal: Option<Vec<f64>>,
    /// Lognormal, rounded to a multiple of a step: `[mean, deviation, step]`.
    pub qlognormal: Option<Vec<f64>>,
    /// An integer: `[start, end]`, without `end`.
    pub randint: Option<Vec<i64>>,
    /// One of these sizes of Azure, on which the trial runs: `["NC4as_T4_v3", "NC24ads_A100_v4"]`; for `--on`.
    pub sizes: Option<Vec<String>>,
    /// The parameter exists only if each of these others has one of its values: `{ optimizer = ["sgd"] }`.
    pub when: BTreeMap<String, Vec<ParameterValue>>,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ParameterValue {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl ParameterValue {
    /// The text that it is, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bool(_) | Self::Int(_) | Self::Float(_) => None,
        }
    }
}

/// Formats the value as the program reads it: without quotes, and floats with the digits needed to
/// read them back.
impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            // Not `Display`, which writes neither exponents nor, for whole numbers, the point.
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

impl<'de> Deserialize<'de> for ParameterValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParameterVisitor)
    }
}

struct ParameterVisitor;

impl Visitor<'_> for ParameterVisitor {
    type Value = ParameterValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number or a boolean")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<ParameterValue, E> {
        Ok(ParameterValue::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<ParameterValue, E> {
        Ok(ParameterValue::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<ParameterValue, E> {
        let out_of_range = || E::invalid_value(de::Unexpected::Unsigned(value), &self);
        i64::try_from(value).map(ParameterValue::Int).map_err(|_| out_of_range())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<ParameterValue, E> {
        Ok(ParameterValue::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<ParameterValue, E> {
        Ok(ParameterValue::Text(value.to_owned()))
    }
}

impl JsonSchema for ParameterValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ParameterValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number", "boolean"]})
    }
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

/// A metric, and whether more of it is better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ObjectiveOptions")]
pub struct Objective {
    pub metric: String,
    pub goal: Goal,
    /// A value that is good enough: the report says what was the cheapest way to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
}

/// Whether less or more of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    Minimize,
    Maximize,
}

/// Where metrics come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricOptions {
    /// The source; standard output if absent.
    pub from: Option<MetricOrigin>,
    /// The format of a line of standard output or of the file; `name=value` if absent.
    pub format: Option<MetricSyntax>,
    /// The regular expression of `format = "regex"`, with a group `value` and optionally `name` and `step`.
    pub pattern: Option<String>,
    /// The file, or the directory of MLflow's file store; `mlruns` for the latter if absent.
    pub path: Option<PathBuf>,
}

/// A source of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricOrigin {
    /// Standard output of the program.
    Stdout,
    /// A file that the program appends to.
    File,
    /// MLflow's file store.
    Mlflow,
}

/// The format of a line with metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricSyntax {
    /// `accuracy=0.93`, anywhere in a line.
    Pairs,
    /// `{"accuracy": 0.93}`.
    Json,
    /// What `pattern` matches.
    Regex,
}

/// How parameters are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SamplerName {
    /// Every combination once; needs finite parameters.
    Grid,
    Random,
    /// A quasi-random sequence that covers the space evenly.
    Sobol,
    /// Tree-structured Parzen estimator: near what was good.
    Tpe,
}

/// When a trial is stopped before its end.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EarlyTermination {
    pub policy: PolicyName,
    /// bandit: a trial may be worse than the best by this factor: `0.2`.
    pub slack_factor: Option<f64>,
    /// bandit: a trial may be worse than the best by this amount: `0.05`.
    pub slack_amount: Option<f64>,
    /// truncation: the percentage of trials that is stopped at each evaluation: `20`.
    pub truncation_percentage: Option<f64>,
    /// truncation: whether ended trials are left out of the comparison; `false` if absent.
    pub exclude_finished: Option<bool>,
    /// bandit, median, truncation: evaluate at every Nth report; 1 if absent.
    pub evaluation_interval: Option<u64>,
    /// bandit, median, truncation: do not evaluate before the Nth report; 0 if absent.
    pub delay_evaluation: Option<u64>,
    /// asha, hyperband: reports before the first decision; 1 if absent.
    pub min_steps: Option<u64>,
    /// asha, hyperband: reports after which a trial is done.
    pub max_steps: Option<u64>,
    /// asha, hyperband: one in this many trials goes on; 4 for asha and 3 for hyperband if absent.
    pub reduction_factor: Option<u32>,
}

/// Policies for early termination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyName {
    /// Stop what is worse than the best by more than the slack.
    Bandit,
    /// Stop what is worse than the median of the running averages.
    Median,
    /// Stop the worst percentage.
    Truncation,
    /// Asynchronous successive halving.
    Asha,
    /// Several brackets of successive halving.
    Hyperband,
}

/// What a sweep never exceeds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitOptions {
    /// Trials in total; needed unless `sampler = "grid"`, or `timeout` or `dollars` ends the sweep.
    pub trials: Option<u32>,
    /// Trials at the same time; as many as there are GPUs for if absent.
    pub concurrent: Option<u32>,
    /// Time of one trial: `"20m"`.
    pub trial_timeout: Option<TimeSpan>,
    /// Time of the sweep, while it is active: `"8h"`.
    pub timeout: Option<TimeSpan>,
    /// US dollars: `12.5`.
    pub dollars: Option<f64>,
}
