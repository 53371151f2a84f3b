//! `[workload]`: what runs, how long and how often.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cudock_facts::version::Date;
use serde::Deserialize;

use super::rate::{DayRate, RequestRate};
use super::words;
use crate::Span;

/// What runs. A job says `duration`, or `items` and `item_time`; a sweep says `trials` and `trial_time`; a service says
/// `rate`, and `replica_rate` or `bench`. Times are those on one instance of the kind `[needs]` asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// Its kind; follows from the other keys if left out.
    pub kind: WorkloadKind,
    /// The model: an ONNX or safetensors file, or a folder of them, from the folder of the project.
    pub model: Option<PathBuf>,
    /// The image it is in, as `team/app:1.0`, `oci:FOLDER` or an archive.
    pub image: Option<String>,
    /// How long the one run of a job computes: `"40m"`.
    pub duration: Option<Span>,
    /// How many items a job works through that do not need each other: `10000`.
    pub items: Option<u64>,
    /// How long one item takes: `"2s"`.
    pub item_time: Option<Span>,
    /// How many trials a sweep makes: `27`.
    pub trials: Option<u32>,
    /// How long one trial takes: `"20m"`.
    pub trial_time: Option<Span>,
    /// How many trials, or instances that share the items, at a time: `3`.
    pub at_once: Option<u32>,
    /// Requests a second: `5`, `"4/h"`, `{ day = 5, night = 0, from = "08:00", to = "20:00" }`, or one number for each
    /// hour of a day. Hours are those of UTC.
    pub rate: Option<DayRate>,
    /// Requests a second that one instance answers when it is full: `40`.
    pub replica_rate: Option<RequestRate>,
    /// A report of `cudock bench --format json` to take `replica_rate` from, from the folder of the project.
    pub bench: Option<PathBuf>,
    /// How full instances are kept, in percent, so that answers stay quick: `70`.
    pub fill: Option<u8>,
    /// Whether a request may wait for an instance to start: `true` lets a service go down to none.
    pub cold_starts: Option<bool>,
    /// Rows the model works on at a time, for the estimate of GPU memory: `8`.
    pub batch: Option<u32>,
    /// Whether the model is trained, which takes memory for gradients and the optimizer's states too.
    pub training: Option<bool>,
    /// The GPU the times were measured on: `"A100-80"`. They are taken to hold on any if left out.
    pub measured_on: Option<String>,
    /// How many times as fast other GPUs are, where that was measured: `{ T4 = 0.15, H100 = 2 }`.
    pub speeds: BTreeMap<String, f64>,
    /// The day it begins: `"2026-12-01"`; today if left out.
    #[serde(deserialize_with = "words::day")]
    pub begins: Option<Date>,
    /// The longest it may take from the order to the end: `"2h"`.
    pub deadline: Option<Span>,
}

/// Kinds of workloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadKind {
    /// Answers requests.
    #[default]
    Serve,
    /// Runs once.
    Job,
    /// Runs many times to find the best settings.
    Sweep,
}
