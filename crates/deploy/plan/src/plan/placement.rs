//! The results of a plan: placements with their cost, and rejections with their reasons.

use std::time::Duration;

use cudock_base::Usd;
use cudock_facts::finding::Finding;
use cudock_facts::version::Date;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::availability::Proof;
use crate::workload::Priority;
use cudock_facts::services::AzureOffering;
use cudock_facts::services::Management;

/// An offer that fits the workload, with its cost.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Placement {
    pub service: AzureOffering,
    pub size: String,
    pub region: String,
    pub priority: Priority,
    /// The id of the GPU in the tables.
    pub gpu: String,
    /// GPUs per instance in thousandths: 500 is half a GPU.
    pub gpus_per_instance: u32,
    pub instances: u32,
    /// Price per hour of an instance.
    pub price_per_hour: Usd,
    pub price_date: Option<Date>,
    pub price_source: Option<String>,
    pub management: Management,
    pub times: Times,
    /// The cost of the whole job, or of a month of serving.
    pub cost: Cost,
    /// The cost of a month of 730 hours, for serving.
    pub per_month: Option<Usd>,
    pub per_million: Option<Usd>,
    /// The quota it needs: `Standard NCASv3_T4 Family: 8 vCPU`.
    pub quota: Option<String>,
    /// The evidence that the service has the size in the region.
    pub proof: Proof,
    /// How much of the cost rests on assumptions: smaller differences mean nothing.
    pub uncertainty: Usd,
    pub reasons: Vec<String>,
    pub warnings: Vec<Finding>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Times {
    /// Time from the order to the program's first useful work.
    #[serde(serialize_with = "exact_seconds")]
    #[schemars(with = "f64")]
    pub start: Duration,
    /// Useful work, waiting for data included.
    #[serde(serialize_with = "seconds")]
    #[schemars(with = "f64")]
    pub work: Duration,
    /// Work done again after evictions, with the starts they cost.
    #[serde(serialize_with = "seconds")]
    #[schemars(with = "f64")]
    pub lost: Duration,
    /// Time from the order to the end; for serving, the longest cold start of a request.
    #[serde(serialize_with = "seconds")]
    #[schemars(with = "f64")]
    pub total: Duration,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Cost {
    /// The sum of the parts, exactly.
    pub total: Usd,
    /// The parts that are not zero.
    pub parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Part {
    pub kind: PartKind,
    pub money: Usd,
    /// The calculation: "3 instances x 0.67 h x $0.526".
    #[serde(rename = "how")]
    pub arithmetic: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// GPUs that work.
    Compute,
    /// Waiting for machine, image and weights, as far as that is billed.
    ColdStart,
    /// Machines that are up without work.
    Idle,
    Evictions,
    Rounding,
    Fee,
    Disk,
    /// Storing and reading the data.
    Storage,
    /// Data that leaves a region or Azure.
    Egress,
}

impl PartKind {
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

/// A service, size or offer that does not fit the workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rejection {
    /// The service; none if no service offers it.
    pub service: Option<AzureOffering>,
    /// The size or profile; none if the whole service is rejected.
    pub size: Option<String>,
    /// The region, if only that one is rejected.
    pub region: Option<String>,
    /// The priority, if only that one is rejected.
    pub priority: Option<Priority>,
    pub code: &'static str,
    pub reason: String,
    /// How far it is from fitting: the fewer needs are unmet and the smaller the gaps, the lower.
    #[serde(skip)]
    pub distance: u64,
}

impl Rejection {
    /// Whether it is about a size on some services, not about all offers.
    pub(crate) fn is_about(&self, services: &[AzureOffering], size: &str) -> bool {
        self.service.is_none_or(|service| services.contains(&service))
            && self.size.as_deref().is_none_or(|rejected| rejected == size)
            && (self.service.is_some() || self.size.is_some())
    }
}

/// Seconds to the millisecond: on a service that has the machine already, a start takes few of them.
fn exact_seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    if time.subsec_millis() == 0 {
        seconds(time, serializer)
    } else {
        serializer.serialize_f64(time.as_secs_f64())
    }
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.as_secs() + u64::from(time.subsec_millis() >= 500))
}
