//! Workloads: the work, its needs and its constraints.

use cudock_facts::services::Management;
use std::collections::BTreeMap;
use std::time::Duration;

use cudock_facts::tables::{ComputeFormat, DataAccess};
use cudock_facts::version::{Capability, Date};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use cudock_base::{Codec, NamedArch, Rate, Usd};

/// A complete workload: values that were not given are inferred or assumed, and recorded in `assumptions`.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    pub work: Work,
    pub gpu: GpuNeeds,
    pub machine: MachineNeeds,
    pub data: Option<DataNeeds>,
    pub start: Start,
    /// How it handles eviction; none if it must not be evicted.
    pub spot: Option<Spot>,
    pub constraints: Constraints,
    pub begins: Date,
    pub assumptions: Vec<Assumption>,
}

/// The work. Times are those of one instance with the GPUs of `GpuNeeds`, measured on
/// `GpuNeeds::measured_on`. In a report, they are in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[allow(clippy::large_enum_variant, reason = "a workload has one")]
pub enum Work {
    Job {
        /// How long it computes when the GPU never waits.
        #[serde(rename = "duration_s", serialize_with = "seconds")]
        #[schemars(with = "f64")]
        duration: Duration,
    },
    Items {
        items: u64,
        /// How long one takes on one instance.
        #[serde(rename = "each_s", serialize_with = "seconds")]
        #[schemars(with = "f64")]
        each: Duration,
        /// The most instances; as many as the deadline needs if left out.
        at_once: Option<u32>,
    },
    /// Trials of a sweep, a few at a time.
    Sweep {
        trials: u32,
        at_once: u32,
        #[serde(rename = "each_s", serialize_with = "seconds")]
        #[schemars(with = "f64")]
        each: Duration,
    },
    /// A service; costs are per month of 730 hours.
    Serve {
        #[serde(rename = "requests_per_second_by_hour", serialize_with = "per_second_by_hour")]
        #[schemars(with = "[f64; 24]")]
        load: DayLoad,
        /// The capacity of one instance at full load.
        #[serde(serialize_with = "per_second")]
        #[schemars(with = "f64")]
        replica_rate: Rate,
        /// Target utilization of instances in percent, to keep latency low.
        target_percent: u8,
    },
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

fn per_second<S: Serializer>(rate: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(rate.times_in(Duration::from_secs(1)))
}

fn per_second_by_hour<S: Serializer>(load: &DayLoad, serializer: S) -> Result<S::Ok, S::Error> {
    load.hours.map(|hour| hour.times_in(Duration::from_secs(1))).serialize(serializer)
}

/// Requests in each hour of a day (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayLoad {
    pub hours: [Rate; 24],
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct GpuNeeds {
    /// Memory of each GPU, in bytes.
    pub memory: u64,
    pub per_instance: u32,
    /// Instances that work together and communicate.
    pub instances: u32,
    pub least_capability: Option<Capability>,
    /// The greatest compute capability: code without PTX runs on its own generation only.
    pub greatest_capability: Option<Capability>,
    /// The number format that the program calculates in; none if it is not known.
    pub precision: Option<ComputeFormat>,
    /// Ids of the GPUs that are allowed; empty if all are.
    pub models: Vec<String>,
    pub nvlink: bool,
    pub infiniband: bool,
    /// The id of the GPU that was measured; none if times are assumed to hold on any.
    pub measured_on: Option<String>,
    /// Measured speeds of other GPUs relative to `measured_on`, in billionths.
    pub speeds: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineNeeds {
    pub vcpu: u32,
    /// Main memory, in bytes.
    pub memory: u64,
    /// The architecture the image is built for, such as `x86_64`; none if for all.
    pub architecture: Option<NamedArch>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DataNeeds {
    pub bytes: u64,
    /// The id of its storage in the tables.
    pub storage: String,
    /// Its region; that of the placement if left out.
    pub region: Option<String>,
    pub access: DataAccess,
    /// How often the program reads all of it.
    pub passes: u32,
    /// Bytes per second that one GPU consumes when it never waits; none if that is unknown.
    pub rate_per_gpu: Option<u64>,
    /// Bytes per read operation, which storage charges for.
    pub read_size: u64,
    /// Bytes that leave Azure, for `Serve` each month.
    pub leaves: u64,
}

/// The parts of a start besides provisioning the machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Start {
    /// The image; none if nothing is pulled.
    pub image: Option<Image>,
    /// Bytes of weights that are fetched separately from the image, from the storage of the data or Blob.
    pub weights: u64,
    /// Time from the start of the program until it is ready, including loading weights into GPU
    /// memory.
    pub ready: Duration,
    pub jit: Duration,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// Bytes that are fetched.
    pub compressed: u64,
    /// Bytes on disk.
    pub unpacked: u64,
    /// The layers, lowest first; empty if unknown, which counts as one layer of gzip.
    pub layers: Vec<ImageLayer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLayer {
    /// Bytes that are fetched.
    pub compressed: u64,
    pub codec: Codec,
}

/// How a workload handles Spot eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// Evictions of an instance.
    pub evictions: Rate,
    /// The time between checkpoints; none if work starts over after an eviction.
    pub checkpoint_every: Option<Duration>,
    pub checkpoint_takes: Duration,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Constraints {
    /// Regions allowed; empty if all are.
    pub regions: Vec<String>,
    /// Services allowed, by `AzureOffering::id`; empty if all are.
    pub services: Vec<String>,
    /// Sizes allowed; empty if all are.
    pub sizes: Vec<String>,
    /// The priority, if only one is allowed.
    pub priority: Option<Priority>,
    /// The least management by the service.
    pub management: Management,
    /// The highest cost: of the whole job, or of a month of serving.
    pub budget: Option<Usd>,
    /// The longest time from the order to the end.
    pub deadline: Option<Duration>,
    /// Serving: whether a request may wait for a cold start.
    pub cold_starts_allowed: bool,
}

/// Whether capacity can be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    Regular,
    /// Azure may evict it at any time.
    Spot,
}

impl Priority {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Regular => "regular",
            Self::Spot => "spot",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Assumption {
    /// The key of `cudock.toml` that gives it: `needs.gpu_memory`.
    pub about: String,
    pub value: String,
    pub source: String,
}

impl Assumption {
    pub fn new(about: &str, value: impl Into<String>, source: impl Into<String>) -> Self {
        Self { about: about.to_owned(), value: value.into(), source: source.into() }
    }
}
