//! What comes out: places, their cost part by part, and why the others are not among them.

use std::time::Duration;

use cudock_facts::finding::Finding;
use cudock_facts::version::Date;
use serde::Serialize;

use crate::availability::Proof;
use crate::money::Money;
use crate::service::ServiceKind;
use crate::workload::{Management, Priority};

/// A place the workload fits into, with what it costs there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Placement {
    /// The service.
    pub service: ServiceKind,
    /// The size, or the workload profile.
    pub size: String,
    /// The region.
    pub region: String,
    /// Whether it can be taken away.
    pub priority: Priority,
    /// The GPU's id in the tables.
    pub gpu: String,
    /// GPUs of an instance in thousandths: 500 is half a GPU.
    pub gpus_per_instance: u32,
    /// Instances at once, at the peak.
    pub instances: u32,
    /// What an instance costs an hour.
    pub price_per_hour: Money,
    /// The day that price was read.
    pub price_date: Option<Date>,
    /// Where that price was read.
    pub price_source: Option<String>,
    /// How much the service does by itself.
    pub management: Management,
    /// How long things take.
    pub times: Times,
    /// What it costs: a job as a whole, serving a month.
    pub cost: Cost,
    /// What a month of 730 hours costs, for serving.
    pub per_month: Option<Money>,
    /// What a million answers cost, for serving.
    pub per_million: Option<Money>,
    /// The quota that must hold it: `Standard NCASv3_T4 Family: 8 vCPU`.
    pub quota: Option<String>,
    /// What proves that the service has the size in the region.
    pub proof: Proof,
    /// What of the cost rests on assumptions: costs that differ by less are the same.
    pub uncertainty: Money,
    /// Why it is here, in sentences.
    pub reasons: Vec<String>,
    /// What to know before choosing it.
    pub warnings: Vec<Finding>,
}

/// How long things take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// From the order to the program's first useful work.
    #[serde(serialize_with = "seconds")]
    pub start: Duration,
    /// Useful work, waiting for data included.
    #[serde(serialize_with = "seconds")]
    pub work: Duration,
    /// Work done again after evictions, with the starts they cost.
    #[serde(serialize_with = "seconds")]
    pub lost: Duration,
    /// From the order to the end; for serving, the longest wait of a request that finds nothing running.
    #[serde(serialize_with = "seconds")]
    pub total: Duration,
}

/// A cost and what it is made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cost {
    /// The sum of the parts, exactly.
    pub total: Money,
    /// The parts, those that are nothing left out.
    pub parts: Vec<Part>,
}

/// A part of a cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// What for.
    pub kind: PartKind,
    /// How much.
    pub money: Money,
    /// The arithmetic in words: "3 instances x 0.67 h x $0.526".
    pub how: String,
}

/// What money is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// GPUs at work.
    Compute,
    /// Waiting for machine, image and weights, as far as it is billed.
    ColdStart,
    /// Machines that are up with nothing to do.
    Idle,
    /// Work lost to evictions.
    Evictions,
    /// What rounding to the billing unit adds.
    Rounding,
    /// What the service itself asks for.
    Fee,
    /// The machine's own disk.
    Disk,
    /// The data's storage: keeping and reading it.
    Storage,
    /// What leaves a region or Azure.
    Egress,
}

impl PartKind {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::ColdStart => "cold-start",
            Self::Idle => "idle",
            Self::Evictions => "evictions",
            Self::Rounding => "rounding",
            Self::Fee => "fee",
            Self::Disk => "disk",
            Self::Storage => "storage",
            Self::Egress => "egress",
        }
    }

    /// All of them, in the order reports list them.
    pub const ALL: [Self; 9] = [
        Self::Compute,
        Self::ColdStart,
        Self::Idle,
        Self::Evictions,
        Self::Rounding,
        Self::Fee,
        Self::Disk,
        Self::Storage,
        Self::Egress,
    ];
}

/// Something that cannot hold the workload, or that its owner does not want.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// The service; none if no service has it.
    pub service: Option<ServiceKind>,
    /// The size or profile; none if the service as a whole is out.
    pub size: Option<String>,
    /// The region, if it is only out there.
    pub region: Option<String>,
    /// The priority, if only that one is out.
    pub priority: Option<Priority>,
    /// The finding's code.
    pub code: &'static str,
    /// Why, in a sentence.
    pub reason: String,
    /// How far it is from fitting, for "the nearest": the fewer unmet needs and the smaller the gap, the lower.
    #[serde(skip)]
    pub distance: u64,
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.as_secs() + u64::from(time.subsec_millis() >= 500))
}
