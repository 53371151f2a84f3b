//! What was given on the command line.

use std::path::PathBuf;

use cudock_facts::version::Date;
use cudock_plan::Management;
use cudock_project::{ByteSize, Span};

/// The flags of `cudock plan` that say what is to be done and what is wanted, as they were typed. Each stands over the
/// key of the same meaning in the file; flags of another kind of work stand over all the file says of work.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct PlanFlags {
    /// `--duration`
    pub(crate) duration: Option<Span>,
    /// `--items`
    pub(crate) items: Option<u64>,
    /// `--item-time`
    pub(crate) item_time: Option<Span>,
    /// `--trials`
    pub(crate) trials: Option<u32>,
    /// `--at-once`
    pub(crate) at_once: Option<u32>,
    /// `--trial-time`
    pub(crate) trial_time: Option<Span>,
    /// `--rate`: `5`, `4/h`, `5,0@08:00-20:00` or 24 rates.
    pub(crate) rate: Option<String>,
    /// `--rate-night`
    pub(crate) rate_night: Option<String>,
    /// `--replica-rate`
    pub(crate) replica_rate: Option<String>,
    /// `--bench`
    pub(crate) bench: Option<PathBuf>,
    /// `--measured-on`
    pub(crate) measured_on: Option<String>,
    /// `--speed GPU=FACTOR`
    pub(crate) speed: Vec<(String, String)>,
    /// `--begins`
    pub(crate) begins: Option<Date>,
    /// `--gpu-memory`
    pub(crate) gpu_memory: Option<ByteSize>,
    /// `--gpus`
    pub(crate) gpus: Option<u32>,
    /// `--nodes`
    pub(crate) nodes: Option<u32>,
    /// `--gpu`
    pub(crate) gpu: Vec<String>,
    /// `--capability`: `7.5`, or `7.0-7.5`.
    pub(crate) capability: Option<String>,
    /// `--nvlink`
    pub(crate) nvlink: bool,
    /// `--infiniband`
    pub(crate) infiniband: bool,
    /// `--vcpu`
    pub(crate) vcpu: Option<u32>,
    /// `--ram`
    pub(crate) ram: Option<ByteSize>,
    /// `--image`
    pub(crate) image: Option<String>,
    /// `--offline`
    pub(crate) offline: bool,
    /// `--model`
    pub(crate) model: Option<PathBuf>,
    /// `--data`
    pub(crate) data: Option<ByteSize>,
    /// `--storage`
    pub(crate) storage: Option<String>,
    /// `--data-rate`
    pub(crate) data_rate: Option<ByteSize>,
    /// `--data-region`
    pub(crate) data_region: Option<String>,
    /// `--deadline`
    pub(crate) deadline: Option<Span>,
    /// `--budget`
    pub(crate) budget: Option<String>,
    /// `--spot` or `--no-spot`
    pub(crate) spot: Option<bool>,
    /// `--evictions`
    pub(crate) evictions: Option<String>,
    /// `--checkpoint-every`
    pub(crate) checkpoint_every: Option<Span>,
    /// `--region`
    pub(crate) region: Vec<String>,
    /// `--service`
    pub(crate) service: Vec<String>,
    /// `--size`
    pub(crate) size: Vec<String>,
    /// `--management`
    pub(crate) management: Option<Management>,
    /// `--no-cold-starts`
    pub(crate) no_cold_starts: bool,
}
