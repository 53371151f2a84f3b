//! The plan of a sweep: the section `[sweep]` of `cudock.toml`, validated and with all defaults
//! filled in.

mod checks;
mod parameters;
mod policy;
mod resolve;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use cudock_base::{UsageError, Usd};
use cudock_project::{Objective, ParameterValue, PassMode};
use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::policy::TerminationPolicy;
use crate::space::{Distribution, Space};

pub use resolve::resolve;

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
    pub limits: SweepLimits,
    pub gpus_per_trial: u32,
    /// More than one only with `gpu_memory`.
    pub trials_per_gpu: u32,
    /// Maximum GPU memory of one trial in bytes.
    pub gpu_memory: Option<u64>,
    /// How often a trial that failed or was lost is started again.
    pub retries: u32,
}

/// The source of metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricSource {
    /// Standard output of the trial.
    Stdout(MetricFormat),
    /// A file that the trial appends to, relative to its working directory.
    File { path: PathBuf, format: MetricFormat },
    /// A directory in the format of MLflow's file store (`mlruns`), relative to the trial's working directory.
    Mlflow { path: PathBuf },
}

/// The format of metrics in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricFormat {
    /// `name=value` anywhere in a line, several per line; `step=N` or `epoch=N` in the same line is the step.
    Pairs,
    /// A JSON object per line, whose numbers are metrics; `step` or `epoch` is the step.
    Json,
    /// Matches of a regular expression.
    Regex(MetricPattern),
}

/// A regular expression with a group `value`, and optionally groups `name` and `step`. Without `name` it is the first
/// objective.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MetricPattern(Regex);

impl MetricPattern {
    pub fn regex(&self) -> &Regex {
        &self.0
    }
}

impl FromStr for MetricPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The last line of the library's message is the reason; those before it repeat the expression.
        let regex = Regex::new(text).map_err(|error| {
            let text = error.to_string();
            let line = text.lines().last().unwrap_or_default();
            format!("invalid regular expression: {}", line.trim_start_matches("error: "))
        })?;
        if regex.capture_names().flatten().any(|name| name == "value") {
            return Ok(Self(regex));
        }
        Err("the pattern has no group `value`: write (?<value>[0-9.eE+-]+) around the number".to_owned())
    }
}

impl TryFrom<String> for MetricPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<MetricPattern> for String {
    fn from(pattern: MetricPattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}

impl PartialEq for MetricPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for MetricPattern {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SamplerKind {
    /// Every combination once.
    Grid,
    Random,
    /// A scrambled quasi-random sequence, which covers the space more evenly.
    Sobol,
    /// Random at first, then near what was good.
    Tpe {
        startup_trials: u32,
    },
}

/// Limits of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepLimits {
    /// Trials in total; none for a grid, which ends by itself.
    pub trials: Option<u32>,
    /// Trials at the same time; all slots if absent.
    pub concurrent: Option<u32>,
    /// Time of one attempt of a trial.
    #[serde(with = "crate::encoding::option_millis")]
    pub trial_timeout: Option<Duration>,
    /// Time that the sweep is active: not the time while it was paused or killed.
    #[serde(with = "crate::encoding::option_millis")]
    pub timeout: Option<Duration>,
    /// US dollars of all attempts.
    #[serde(with = "crate::encoding::option_usd")]
    pub dollars: Option<Usd>,
}

impl SweepPlan {
    /// Checks what [`resolve`] has checked again, for a plan whose fields were changed by flags.
    pub fn check(&self) -> Result<(), UsageError> {
        checks::check(self).map_err(|problem| UsageError::new(problem.message))
    }

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

/// A problem, and the key that has it.
#[derive(Debug)]
struct Problem {
    key: String,
    message: String,
}

impl Problem {
    fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }
}
