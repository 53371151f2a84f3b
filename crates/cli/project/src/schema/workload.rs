//! `[workload]`: what runs, for how long and how often.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cudock_facts::version::Date;
use schemars::JsonSchema;
use serde::Deserialize;

use super::one_or_many;
use super::rate::{DayRate, RequestRate};
use crate::TimeSpan;

/// What runs. A job has `duration`, or `items` and `item_time`; a sweep has `trials` and `trial_time`; a service has
/// `rate`, and `replica_rate` or `bench`. Times are those on one instance that meets `[needs]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// Its kind; derived from the other keys if absent.
    pub kind: WorkloadKind,
    /// The model: an ONNX or safetensors file, or a directory of them, relative to the project's directory.
    pub model: Option<PathBuf>,
    /// Its image: `team/app:1.0`, `oci:DIRECTORY` or an archive.
    pub image: Option<String>,
    /// Compute time of a job's only run: `"40m"`.
    #[schemars(extend("pattern" = "[1-9]"))]
    pub duration: Option<TimeSpan>,
    /// Number of independent items of a job: `10000`.
    #[schemars(extend("minimum" = 1))]
    pub items: Option<u64>,
    /// Time of one item: `"2s"`.
    #[schemars(extend("pattern" = "[1-9]"))]
    pub item_time: Option<TimeSpan>,
    /// Number of trials of a sweep: `27`.
    #[schemars(extend("minimum" = 1))]
    pub trials: Option<u32>,
    /// Time of one trial: `"20m"`.
    #[schemars(extend("pattern" = "[1-9]"))]
    pub trial_time: Option<TimeSpan>,
    /// Number of trials, or of instances that share the items, at a time: `3`.
    #[schemars(extend("minimum" = 1))]
    pub at_once: Option<u32>,
    /// Requests per second: `5`, `"4/h"`, `{ day = 5, night = 0, from = "08:00", to = "20:00" }`, or one number for each
    /// hour of a day. Hours are in UTC.
    pub rate: Option<DayRate>,
    /// Requests per second of one fully loaded instance: `40`.
    #[schemars(extend("exclusiveMinimum" = 0, "pattern" = "[1-9]"))]
    pub replica_rate: Option<RequestRate>,
    /// A report of `cudock bench --format json` to take `replica_rate` from, relative to the project's directory.
    pub bench: Option<PathBuf>,
    /// Target load of an instance in percent, so that responses stay fast: `70`.
    #[schemars(extend("minimum" = 1, "maximum" = 100))]
    pub fill: Option<u8>,
    /// Whether a request may wait for an instance to start: `true` lets a service scale to zero.
    pub cold_starts: Option<bool>,
    /// Rows of a batch, for the estimate of GPU memory: `8`.
    #[schemars(extend("minimum" = 1))]
    pub batch: Option<u32>,
    /// Whether the model is trained, which also needs memory for gradients and optimizer states.
    pub training: Option<bool>,
    /// The GPU on which the times were measured: `"A100-80"`. They apply to every GPU if absent.
    pub measured_on: Option<String>,
    /// Measured speed of other GPUs, relative to that one: `{ T4 = 0.15, H100 = 2 }`.
    #[schemars(extend("additionalProperties" = {"type": "number", "exclusiveMinimum": 0}))]
    pub speeds: BTreeMap<String, f64>,
    /// The day it begins: `"2026-12-01"`; today if absent.
    #[serde(deserialize_with = "one_or_many::day")]
    pub begins: Option<Date>,
    /// Longest time from the request to the end: `"2h"`.
    #[schemars(extend("pattern" = "[1-9]"))]
    pub deadline: Option<TimeSpan>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadKind {
    /// A service.
    #[default]
    Serve,
    Job,
    /// A hyperparameter sweep.
    Sweep,
}
