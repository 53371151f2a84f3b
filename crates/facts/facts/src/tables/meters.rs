use cudock_base::{Usd, usd_text};
use serde::{Deserialize, Serialize};

use super::header::table_file;
use crate::version::Date;

table_file! {
    /// `azure_meters.toml`: charges of services in addition to the price of a size, how they count
    /// time, how long they take to start, and their limits.
    ///
    /// A service is named as `cudock plan` names it (`ml-endpoint`, `container-apps-dedicated`), not as
    /// `azure_services.toml` does; what belongs to none of them is `network`. Megabytes are 10^6 bytes.
    pub struct Meters = "azure_meters" {
        pub meter: Vec<Meter> by |row| {
            let gpu = row.gpu.as_deref().map_or_else(String::new, |gpu| format!("/{gpu}"));
            let place = row.area.clone().unwrap_or_else(|| row.regions.join(","));
            let place = if place.is_empty() { place } else { format!("/{place}") };
            let above = if row.above == 0 { String::new() } else { format!("/above {}", row.above) };
            format!("{}/{}{gpu}{place}{above}", row.service, row.meter)
        },
        pub billing: Vec<Billing> by |row| row.service.clone(),
        /// How long services take to start something.
        pub start: Vec<StartTimes> by |row| row.service.clone(),
        /// How fast storage is read.
        pub throughput: Vec<Throughput> by |row| row.storage.clone(),
        /// Managed disks that are sold by tier.
        pub disk_tier: Vec<DiskTier> by |row| format!("{}/{}", row.storage, row.tier),
        /// Sizes that managed online endpoints support.
        pub endpoint_size: Vec<EndpointSize> by |row| row.size.clone(),
        /// Limits that determine whether a workload fits.
        pub bound: Vec<Bound> by |row| format!("{}/{}", row.service, written(&row.key)),
        /// Which regions lie together, as far as moving data between them is priced.
        pub area: Vec<Area> by |row| row.id.clone(),
    }
}

/// A price of something that is counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meter {
    /// The service, or `network`.
    pub service: String,
    pub meter: MeterKind,
    /// The id of the GPU it is about, where it is about one.
    pub gpu: Option<String>,
    #[serde(with = "usd_text")]
    pub usd: Usd,
    /// Where it holds; empty if everywhere, or in all of `area`.
    #[serde(default)]
    pub regions: Vec<String>,
    /// The area whose regions it holds for.
    pub area: Option<String>,
    /// The count in a month from which it holds, free ones included; 0 if from the first.
    #[serde(default)]
    pub above: u64,
    /// How many a month cost nothing, for a whole subscription.
    pub free_per_month: Option<u64>,
    pub as_of: Date,
    /// Whether it is worked out from other prices because none was found.
    #[serde(default)]
    pub assumed: bool,
    /// A note; for an assumed price, how it was worked out.
    pub note: Option<String>,
    pub source: Vec<String>,
}

/// The billed quantity. A month has 730 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeterKind {
    /// A second of a virtual processor.
    VcpuSecond,
    /// A second of a GiB of memory.
    GibSecond,
    GpuSecond,
    RequestsMillion,
    /// An hour of a virtual processor of a dedicated profile.
    ProfileVcpuHour,
    /// An hour of a GiB of memory of a dedicated profile.
    ProfileGibHour,
    /// An hour of a GPU of a dedicated profile.
    ProfileGpuHour,
    /// An hour of an environment that has a dedicated profile.
    ManagementHour,
    /// An hour of a cluster's control plane.
    ClusterHour,
    /// An hour of the node that a cluster keeps for itself.
    SystemNodeHour,
    /// An hour of a load balancer with up to five rules.
    LoadBalancerHour,
    PublicIpHour,
    /// A day of the load balancer that each 50 nodes of a cluster share.
    NodeBalancerDay,
    /// A day of the container registry that comes with a workspace.
    RegistryDay,
    EgressGb,
    /// A GB that goes to another region of the same area.
    InterRegionGb,
    /// A GB that goes to a region of another area.
    InterAreaGb,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Billing {
    pub service: String,
    /// Seconds of the unit that is counted; at least 1.
    pub unit_s: u32,
    /// How a fraction of a unit is counted.
    pub rounding: Rounding,
    #[serde(default)]
    pub minimum_s: u32,
    #[serde(default)]
    pub assumed: bool,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// It counts as a whole one.
    Up,
    /// It does not count.
    Down,
    /// It counts from a half on.
    Nearest,
}

/// How long a service takes to start something, image and program left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartTimes {
    pub service: String,
    /// Seconds between the order and a machine that can pull an image, without `gpu_driver_s`.
    pub provision_s: u32,
    /// Megabytes of compressed image a second that are fetched.
    pub pull_mb_per_s: u32,
    /// Megabytes of image a second that are unpacked from gzip and written to disk.
    pub unpack_mb_per_s: u32,
    /// The same from zstd; as from gzip if left out.
    pub unpack_zstd_mb_per_s: Option<u32>,
    /// The same of layers that are not compressed; as from gzip if left out.
    pub unpack_plain_mb_per_s: Option<u32>,
    /// Whether a layer is unpacked before those below it, if it is there first; docker and containerd do not.
    #[serde(default)]
    pub unpacks_in_any_order: bool,
    /// How much of these rates a compressed layer reaches that is unpacked alone, where several are unpacked at once; all if
    /// left out.
    pub unpack_alone_percent: Option<u32>,
    /// How much of the processors a pull takes, so that unpacking has the rest meanwhile; none if left out.
    pub pull_cpu_percent: Option<u32>,
    /// Additional seconds to install the driver, if the service's images have none.
    pub gpu_driver_s: Option<u32>,
    /// The event that starts billing.
    pub billed_from: BilledFrom,
    /// Idle seconds after which an instance is given back; none if that is left to its owner.
    pub cool_down_s: Option<u32>,
    /// Figures that no source gives.
    #[serde(default)]
    pub assumed: Vec<StartFigure>,
    /// A note; for assumed figures, the reason for them.
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BilledFrom {
    Order,
    /// The machine is available: driver and image are paid for.
    Machine,
    /// The first pull of the image begins.
    Pull,
    /// The container starts.
    Container,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartFigure {
    Provision,
    Pull,
    Unpack,
    GpuDriver,
    BilledFrom,
    CoolDown,
}

/// How fast one instance reads a storage: the sum of the parts, up to the most. With no part at all the network of
/// the size is what bounds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throughput {
    pub storage: String,
    /// Megabytes per second, independent of the size.
    pub mb_per_s: Option<u32>,
    /// Megabytes per second for each TiB.
    pub mb_per_s_per_tib: Option<u32>,
    /// Megabytes per second for each disk of the machine.
    pub mb_per_s_per_disk: Option<u32>,
    pub most_mb_per_s: Option<u32>,
    pub least_gib: Option<u32>,
    #[serde(default)]
    pub assumed: bool,
    pub note: Option<String>,
    pub source: Vec<String>,
}

/// A tier of managed disks: what `azure_storage.toml` prices as `P10-month`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskTier {
    pub storage: String,
    pub tier: String,
    pub gib: u32,
    /// Operations per second, without bursts.
    pub iops: u32,
    /// Megabytes per second, without bursts.
    pub mb_per_s: u32,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointSize {
    pub size: String,
    /// Whether no quota is reserved for upgrades of deployments.
    pub reserve_exempt: bool,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    pub service: String,
    pub key: BoundKey,
    /// The figure, in the key's unit.
    pub value: u64,
    pub unit: BoundUnit,
    /// Whether it can be increased on request.
    #[serde(default)]
    pub can_be_raised: bool,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundKey {
    JobLifetime,
    /// The maximum run time of a job on Spot.
    JobLifetimeSpot,
    ImageSize,
    /// Concurrent instances or nodes.
    Instances,
    /// Concurrent instances or nodes after a quota increase.
    InstancesMost,
    /// Instances that communicate with each other.
    InstancesTogether,
    GpusPerInstance,
    Trials,
    TrialsAtOnce,
    RequestsPerSecond,
    RequestTimeout,
    /// Additional quota reserved for upgrades.
    QuotaReserve,
    /// The minimum number of instances.
    LeastInstances,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundUnit {
    Seconds,
    Bytes,
    Count,
    PerSecond,
    Percent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    pub id: String,
    pub name: String,
    pub regions: Vec<String>,
    pub source: Vec<String>,
}

impl BoundKey {
    pub const fn unit(self) -> BoundUnit {
        match self {
            Self::JobLifetime | Self::JobLifetimeSpot | Self::RequestTimeout => BoundUnit::Seconds,
            Self::ImageSize => BoundUnit::Bytes,
            Self::RequestsPerSecond => BoundUnit::PerSecond,
            Self::QuotaReserve => BoundUnit::Percent,
            Self::Instances
            | Self::InstancesMost
            | Self::InstancesTogether
            | Self::GpusPerInstance
            | Self::Trials
            | Self::TrialsAtOnce
            | Self::LeastInstances => BoundUnit::Count,
        }
    }
}

/// The name of a variant in the data file.
pub(crate) fn written(variant: &impl std::fmt::Debug) -> String {
    let mut name = String::new();
    for letter in format!("{variant:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

impl std::fmt::Display for MeterKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&written(self))
    }
}
