//! Messages between a sweep and its workers: JSON lines over the worker's standard input and
//! output.

use std::io::Stdin;
use std::path::PathBuf;

use cudock_base::Timestamp;
use cudock_sweep::{Assignment, AttemptEnd, MetricSource, TrialId};
use serde::{Deserialize, Serialize};

use super::messages::MessageReader;

/// A message from a sweep to a worker. The end of the input means that the sweep is gone.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerRequest {
    Start(Box<AttemptStart>),
    /// End the running attempt, if it is this one.
    Stop {
        trial: TrialId,
        attempt: u32,
    },
}

/// The requests of a worker.
pub(crate) type RequestReader = MessageReader<Stdin>;

/// An attempt to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AttemptStart {
    pub(crate) trial: TrialId,
    pub(crate) attempt: u32,
    /// The time recorded in the journal.
    #[serde(with = "cudock_sweep::encoding::timestamp")]
    pub(crate) starting: Timestamp,
    /// The directory of the trial.
    pub(crate) directory: PathBuf,
    pub(crate) working_directory: PathBuf,
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) parameters: Assignment,
    /// The name of its container.
    pub(crate) container: Option<String>,
    pub(crate) objectives: Vec<String>,
    pub(crate) metrics: MetricSource,
    pub(crate) gpus: Vec<String>,
    /// Maximum bytes of GPU memory that its processes may use, if other trials use the same GPU.
    pub(crate) gpu_memory_limit: Option<u64>,
    /// Whether no other trial uses these GPUs, so that their memory must be free afterwards.
    pub(crate) has_own_gpus: bool,
    /// Milliseconds between SIGTERM and SIGKILL.
    pub(crate) grace_ms: u64,
}

impl AttemptStart {
    /// The result of an attempt that ended like this, before it ran.
    pub(crate) fn result(&self, end: AttemptEnd) -> AttemptResult {
        AttemptResult {
            trial: self.trial,
            attempt: self.attempt,
            starting: self.starting,
            end,
            ran_ms: 0,
            interrupted: false,
            notes: Vec::new(),
            gpu_memory: Vec::new(),
        }
    }
}

/// An event that a worker sends to its sweep, and writes to the file of the attempt.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerEvent {
    /// The worker holds its lock and accepts requests.
    Ready,
    Started {
        pid: u32,
        start_time: u64,
    },
    Reported(Vec<MetricReport>),
    Ended(AttemptResult),
}

/// One report of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MetricReport {
    pub(crate) metric: String,
    /// The number of the report among those of this metric, from 1.
    pub(crate) interval: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<u64>,
    #[serde(with = "cudock_sweep::encoding::any_float")]
    pub(crate) value: f64,
}

/// How an attempt ended: the last line of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptResult {
    pub(crate) trial: TrialId,
    pub(crate) attempt: u32,
    /// Its start according to the journal.
    #[serde(with = "cudock_sweep::encoding::timestamp")]
    pub(crate) starting: Timestamp,
    pub(crate) end: AttemptEnd,
    pub(crate) ran_ms: u64,
    /// Whether it was ended because its sweep was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) interrupted: bool,
    /// Notes for the user: output that was dropped, processes that were left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// Memory of its GPUs before and after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gpu_memory: Vec<GpuMemory>,
}

/// Bytes in use on a GPU, by all processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GpuMemory {
    pub(crate) gpu: String,
    pub(crate) before: u64,
    pub(crate) after: u64,
}
