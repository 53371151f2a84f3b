//! What is to be done, and what it needs.

use std::collections::BTreeMap;
use std::time::Duration;

use cudock_facts::version::{Capability, Date};
use serde::Serialize;

use crate::money::Money;

/// A workload, complete: what was not given has been inferred or assumed, and stands in `assumptions`.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// What is to be done.
    pub work: Work,
    /// What it needs of GPUs.
    pub gpu: GpuNeeds,
    /// What it needs of the machine around them.
    pub machine: MachineNeeds,
    /// What it reads.
    pub data: Option<Data>,
    /// What a start of it takes.
    pub start: Start,
    /// How it bears eviction; none if it must not be evicted.
    pub spot: Option<Spot>,
    /// What its owner wants.
    pub wishes: Wishes,
    /// The day it begins.
    pub begins: Date,
    /// What was not given, and what stands in its place.
    pub assumptions: Vec<Assumption>,
}

/// What is to be done. Times are those on one instance of the kind `GpuNeeds` asks for, on the GPU that
/// `GpuNeeds::measured_on` names.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// One run.
    Job {
        /// How long it computes, with the GPU kept busy.
        duration: Duration,
    },
    /// Many items that do not need each other, spread over instances.
    Items {
        /// How many.
        items: u64,
        /// How long one takes on one instance.
        each: Duration,
        /// How many instances at most; as many as the deadline asks for if left out.
        at_once: Option<u32>,
    },
    /// Trials of a sweep, a few at a time.
    Sweep {
        /// How many.
        trials: u32,
        /// How many at a time.
        at_once: u32,
        /// How long one takes.
        each: Duration,
    },
    /// Answers requests, for months; costs are given a month of 730 hours.
    Serve {
        /// Requests over the day.
        load: DayLoad,
        /// What one instance answers when it is full.
        replica_rate: PerSecond,
        /// How full instances are kept, in percent, so that answers stay quick.
        target_percent: u8,
    },
}

/// A rate in thousandths a second: exact, and fine enough for four requests an hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PerSecond {
    /// Thousandths a second.
    pub millis: u64,
}

/// Requests a second, hour by hour of a day (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayLoad {
    /// The rate of each hour.
    pub hours: [PerSecond; 24],
}

/// What is needed of GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuNeeds {
    /// Memory of each GPU, in bytes.
    pub memory: u64,
    /// GPUs in one instance.
    pub per_instance: u32,
    /// Instances that work together; above one they talk to each other.
    pub instances: u32,
    /// The least compute capability.
    pub least_capability: Option<Capability>,
    /// The greatest compute capability: code without PTX runs on its own generation only.
    pub greatest_capability: Option<Capability>,
    /// GPUs by their ids in the tables; empty if any will do.
    pub models: Vec<String>,
    /// Whether GPUs of an instance must be joined by NVLink.
    pub nvlink: bool,
    /// Whether instances must be joined by `InfiniBand`.
    pub infiniband: bool,
    /// The GPU the times hold on, by its id; none if they are taken to hold on any.
    pub measured_on: Option<String>,
    /// How many times as fast as `measured_on` others are, in thousandths, where measured.
    pub speeds: BTreeMap<String, u64>,
}

/// What is needed of the machine around the GPUs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineNeeds {
    /// Virtual processors.
    pub vcpu: u32,
    /// Main memory, in bytes.
    pub memory: u64,
    /// The processor the image is made for, as `x86_64`; none if for all.
    pub architecture: Option<String>,
}

/// What is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    /// Bytes that lie there.
    pub bytes: u64,
    /// Where: the id of a storage in the tables.
    pub storage: String,
    /// The region it lies in; that of the placement if left out.
    pub region: Option<String>,
    /// How it is read.
    pub access: Access,
    /// Bytes a second that one GPU uses up when it never waits; none if the data does not bound the work.
    pub rate_per_gpu: Option<u64>,
    /// Bytes of one read operation, which is what storage charges by.
    pub read_size: u64,
    /// Bytes that leave Azure in the end (for `Serve`: each month).
    pub leaves: u64,
}

/// How data is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// From front to back, so many times, from where it lies.
    Stream {
        /// Passes.
        passes: u32,
    },
    /// Copied to the machine's own disk first, then read there.
    Stage,
    /// Whichever of the two is cheaper there.
    Either {
        /// Passes.
        passes: u32,
    },
}

/// What a start takes, apart from what the service takes to give a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Start {
    /// The image; none if there is nothing to pull.
    pub image: Option<Image>,
    /// Bytes of weights fetched apart from the image, from the data's storage or Blob.
    pub weights: u64,
    /// From the program's start until it is ready, weights in GPU memory included.
    pub ready: Duration,
    /// What the driver compiles at first use.
    pub jit: Duration,
}

/// An image, as far as pulling it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Bytes that are fetched.
    pub compressed: u64,
    /// Bytes on disk.
    pub unpacked: u64,
}

/// How eviction is borne.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// Evictions an hour of one instance, in thousandths.
    pub evictions_per_hour: u64,
    /// The time between checkpoints; none if work starts over.
    pub checkpoint_every: Option<Duration>,
    /// What writing one takes.
    pub checkpoint_takes: Duration,
}

/// What the owner wants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wishes {
    /// Regions allowed; empty if all are.
    pub regions: Vec<String>,
    /// Services allowed, by `ServiceKind::id`; empty if all are.
    pub services: Vec<String>,
    /// Sizes allowed; empty if all are.
    pub sizes: Vec<String>,
    /// The priority, if only one will do.
    pub priority: Option<Priority>,
    /// How much must be done by the service.
    pub management: Management,
    /// Most money: for the whole of a job, for a month of serving.
    pub budget: Option<Money>,
    /// Most time from the order to the end.
    pub deadline: Option<Duration>,
    /// Serving: whether a request may wait for a cold start.
    pub cold_starts_allowed: bool,
}

/// How much a service does by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Management {
    /// Machines of one's own will do.
    #[default]
    Own,
    /// Machines are made, mended and removed by the service.
    Managed,
    /// There are no machines to see.
    Serverless,
}

impl Management {
    /// Its name in flags and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Managed => "managed",
            Self::Serverless => "serverless",
        }
    }
}

/// What a machine may be taken away for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Nothing.
    Regular,
    /// Somebody who pays more.
    Spot,
}

impl Priority {
    /// Its name in flags and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Regular => "regular",
            Self::Spot => "spot",
        }
    }
}

/// Something that was not given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// What it is about, as the key of `cudock.toml`: `needs.gpu_memory`.
    pub about: String,
    /// What was taken.
    pub value: String,
    /// Why: where it comes from.
    pub source: String,
}
