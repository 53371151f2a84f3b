use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::header::{Header, row, table_file};
use crate::version::{Date, DriverVersion};

/// `azure_sizes.toml`: virtual machine sizes with a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// Age and sources.
    pub table: Header,
    /// Sizes.
    #[serde(default)]
    pub size: Vec<Size>,
    /// Choices that tutorials still make.
    #[serde(default)]
    pub outdated: Vec<Outdated>,
    /// Where the documentation contradicts itself, and what was taken.
    #[serde(default)]
    pub discrepancy: Vec<Discrepancy>,
}

/// A virtual machine size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// `Standard_NC4as_T4_v3`
    pub name: String,
    /// Its series.
    pub series: Option<String>,
    /// The id of its GPU.
    pub gpu: Option<String>,
    /// The board, where that says more than the GPU.
    pub gpu_board: Option<String>,
    /// How many; below one is a share of a GPU.
    pub gpu_count: Option<f64>,
    /// Memory of each GPU, or of the share.
    pub gpu_memory_gb: Option<f64>,
    /// Virtual processors.
    pub vcpu: Option<u32>,
    /// Main memory.
    pub ram_gib: Option<f64>,
    /// Temporary disk.
    pub temp_disk_gib: Option<u32>,
    /// Local `NVMe` disks.
    pub nvme_disks: Option<u32>,
    /// Local `NVMe` in all.
    pub nvme_gib: Option<u32>,
    /// Remote disks at most.
    pub remote_disks: Option<u32>,
    /// Operations a second on remote disks.
    pub remote_disk_iops: Option<u32>,
    /// Megabytes a second on remote disks.
    pub remote_disk_mbps: Option<u32>,
    /// Network, megabits a second.
    pub network_mbps: Option<u32>,
    /// Network cards at most.
    pub nics: Option<u32>,
    /// Whether it has `InfiniBand`.
    pub infiniband: Option<bool>,
    /// `InfiniBand`, gigabits a second for the machine.
    pub infiniband_gbps: Option<u32>,
    /// `NVLink` between its GPUs.
    pub nvlink: Option<String>,
    /// Whether it is made as a confidential VM only.
    #[serde(default)]
    pub confidential: bool,
    /// `x86_64` or aarch64.
    pub cpu_arch: String,
    /// Hypervisor generations it boots.
    #[serde(default)]
    pub generations: Vec<String>,
    /// Which kind of driver it takes.
    pub driver: Option<SizeDriver>,
    /// The quota family, as the service spells it.
    pub quota_family: Option<String>,
    /// Systems AKS has node images for.
    #[serde(default)]
    pub aks_node_os: Vec<String>,
    /// Whether Spot is offered.
    pub spot: Option<bool>,
    /// Whether it can still be had.
    pub lifecycle: Lifecycle,
    /// When it ended.
    pub retired_on: Option<Date>,
    /// When it will end.
    pub retires_on: Option<Date>,
    /// Where it ends later.
    #[serde(default)]
    pub retired_on_by_region: BTreeMap<String, Date>,
    /// What to take instead.
    pub replacement: Option<String>,
    /// Whether there is a page about it; otherwise only a price was seen.
    pub documented: bool,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// Which kind of driver a size takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeDriver {
    /// NVIDIA's data-centre driver.
    Cuda,
    /// Azure's build of the GRID driver.
    Grid,
    /// The GRID driver's version 20 line.
    GridV20,
    /// AMD's `ROCm`.
    Rocm,
    /// AMD's driver.
    Amd,
    /// AMD's driver, on Windows alone.
    AmdWindows,
}

/// Whether a size can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lifecycle {
    /// It can.
    Available,
    /// No more.
    Retired,
    /// On request.
    Preview,
    /// It could, as a preview.
    PreviewEnded,
    /// A price is all that is known.
    Unknown,
    /// Not yet.
    Announced,
}

/// A choice that tutorials still make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outdated {
    /// The choice.
    pub choice: String,
    /// What became of it.
    pub status: String,
    /// When it ended.
    pub retired_on: Option<Date>,
    /// What to take instead.
    pub use_instead: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// A contradiction in the documentation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discrepancy {
    /// The size it is about.
    pub size: String,
    /// What it is.
    pub text: String,
    /// Where it was read.
    pub source: Vec<String>,
}

/// `azure_services.toml`: the services that can hold a GPU container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Services {
    /// Age and sources.
    pub table: Header,
    /// Services.
    #[serde(default)]
    pub service: Vec<Service>,
    /// Their limits.
    #[serde(default)]
    pub limit: Vec<ServiceLimit>,
    /// GPU workload profiles.
    #[serde(default)]
    pub profile: Vec<Profile>,
    /// The drivers they install.
    #[serde(default)]
    pub driver: Vec<AzureDriver>,
    /// How they behave where one would not expect it.
    #[serde(default)]
    pub behaviour: Vec<Behaviour>,
    /// Published start-up times.
    #[serde(default)]
    pub startup: Vec<Startup>,
    /// Which service takes which series.
    #[serde(default)]
    pub support: Vec<Support>,
    /// Azure's regions.
    #[serde(default)]
    pub region: Vec<Region>,
    /// Series that only some regions have.
    #[serde(default)]
    pub series_region: Vec<SeriesRegions>,
}

/// A service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// aci, container-apps, ml, batch, vm, aks
    pub id: String,
    /// Its full name.
    pub name: String,
    /// Resource types.
    pub resource_types: Vec<String>,
    /// API versions seen.
    pub api_versions: Vec<String>,
    /// Whether it has GPUs.
    pub gpu: ServiceGpu,
    /// When its GPUs ended.
    pub gpu_retired_on: Option<Date>,
    /// What to know about its GPUs.
    pub gpu_note: Option<String>,
    /// What to take instead.
    pub replacement: Option<String>,
    /// What is billed, and when.
    pub billing: String,
    /// Whether it bills by the second.
    pub per_second: bool,
    /// Whether it costs nothing while idle.
    pub scale_to_zero: bool,
    /// Spot, where it has any.
    pub spot: Option<String>,
    /// GPUs in one instance.
    pub gpus_per_instance: Option<String>,
    /// CPU architectures.
    pub cpu_arch: Vec<String>,
    /// The largest image it pulls.
    pub max_image_gb: Option<u32>,
    /// Which quota it draws on.
    pub quota: String,
    /// What is known of its cold start.
    pub cold_start: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// Whether a service has GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceGpu {
    /// It has.
    Available,
    /// It had.
    Retired,
}

/// A limit of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceLimit {
    /// The service's id.
    pub service: String,
    /// What is limited.
    pub key: String,
    /// The figure with its unit.
    pub value: String,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// A GPU workload profile of Container Apps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The service's id.
    pub service: String,
    /// Consumption-GPU-NC8as-T4
    pub name: String,
    /// consumption or dedicated
    pub plan: String,
    /// The id of its GPU.
    pub gpu: String,
    /// How many.
    pub gpu_count: u32,
    /// Virtual processors.
    pub vcpu: u32,
    /// Memory.
    pub memory_gib: u32,
    /// Where it is offered.
    #[serde(default)]
    pub regions: Vec<String>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// The driver a service installs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AzureDriver {
    /// The service's id.
    pub service: String,
    /// Which sizes, for people.
    pub applies_to: String,
    /// The series it is for; empty if for every size of this kind that no other row of the service names.
    #[serde(default)]
    pub series: Vec<String>,
    /// Its kind.
    pub kind: SizeDriver,
    /// Its version, where known.
    pub version: Option<DriverVersion>,
    /// Its branch, where no more than that is known.
    pub branch: Option<u16>,
    /// The image or extension that brings it.
    pub image: Option<String>,
    /// How old that is.
    pub as_of: Option<Date>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// Whether a service takes the sizes of a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Support {
    /// The service, or a part of it: `ml-cluster`.
    pub service: String,
    /// The series.
    pub series: String,
    /// What the sources say.
    pub value: SupportValue,
    /// Whether the source speaks of a sibling of the service.
    #[serde(default)]
    pub inferred: bool,
    /// Whether the user installs the driver.
    #[serde(default)]
    pub own_driver: bool,
    /// The day of the source.
    pub as_of: Date,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// What sources say about a series on a service, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SupportValue {
    /// A page says that it is taken.
    Documented,
    /// No page does, but it is known to have run.
    InUse,
    /// No page names it.
    NotListed,
    /// A page says that it is not taken.
    Refused,
}

/// A region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// `westeurope`
    pub name: String,
    /// Whether it is on the list of public regions.
    #[serde(default = "yes")]
    pub listed: bool,
    /// The cloud it belongs to, if not the public one.
    pub cloud: Option<String>,
    /// Whether access has to be requested.
    #[serde(default)]
    pub restricted: bool,
    /// Whether it has availability zones.
    #[serde(default = "yes")]
    pub zones: bool,
    /// What else to know.
    pub note: Option<String>,
    /// The day of the source.
    pub as_of: Date,
    /// Where it was read.
    pub source: Vec<String>,
}

/// The regions that have a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesRegions {
    /// The series.
    pub series: String,
    /// Its regions.
    pub regions: Vec<String>,
    /// Whether the source gives these as all there are.
    pub complete: bool,
    /// The day of the source.
    pub as_of: Date,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

const fn yes() -> bool {
    true
}

/// How a service behaves where one would not expect it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Behaviour {
    /// The service's id, or "spot", "quota".
    pub service: String,
    /// A name for it.
    pub id: String,
    /// What it does.
    pub text: String,
    /// Where it was read.
    pub source: Vec<String>,
}

/// A published start-up time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Startup {
    /// The service's id.
    pub service: String,
    /// The figure.
    pub figure: String,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// `azure_storage.toml`: where data can lie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageTable {
    /// Age and sources.
    pub table: Header,
    /// Kinds of storage.
    #[serde(default)]
    pub storage: Vec<Storage>,
    /// Their prices.
    #[serde(default)]
    pub price: Vec<StoragePrice>,
    /// Their limits.
    #[serde(default)]
    pub limit: Vec<StorageLimit>,
}

/// A kind of storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Our name for it.
    pub id: String,
    /// Its full name.
    pub name: String,
    /// What sort of thing it is.
    pub kind: StorageKind,
    /// Capacity at most.
    pub max_gib: Option<u64>,
    /// Megabytes a second at most.
    pub max_mbps: Option<f64>,
    /// Operations a second at most.
    pub max_iops: Option<u32>,
    /// Whether a machine boots from it.
    pub os_disk: Option<bool>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// What sort of thing a storage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageKind {
    /// In the machine.
    Local,
    /// A managed disk.
    Disk,
    /// Blobs.
    Object,
    /// A file share.
    File,
    /// Lustre.
    Lustre,
}

/// A price of storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoragePrice {
    /// The storage's id.
    pub storage: String,
    /// What is counted.
    pub meter: String,
    /// US dollars.
    pub usd: f64,
    /// Where.
    pub region: String,
    /// When.
    pub as_of: Date,
    /// Where it was read.
    pub source: Vec<String>,
}

/// A limit of storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageLimit {
    /// The storage's id.
    pub storage: String,
    /// What is limited.
    pub key: String,
    /// The figure with its unit.
    pub value: String,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

row!(Size, |row| row.name.clone());
row!(Outdated, |row| row.choice.clone());
row!(Discrepancy, |row| format!("{}: {}", row.size, row.text));
row!(Service, |row| row.id.clone());
row!(ServiceLimit, |row| format!("{}/{}", row.service, row.key));
row!(Profile, |row| row.name.clone());
row!(AzureDriver, |row| {
    let version = row.version.map_or_else(String::new, |version| version.to_string());
    format!("{}/{}/{:?}/{version}", row.service, row.applies_to, row.kind)
});
row!(Behaviour, |row| format!("{}/{}", row.service, row.id));
row!(Startup, |row| format!("{}/{}", row.service, row.figure));
row!(Support, |row| format!("{}/{}", row.service, row.series));
row!(Region, |row| row.name.clone());
row!(SeriesRegions, |row| row.series.clone());
row!(Storage, |row| row.id.clone());
row!(StoragePrice, |row| format!("{}/{}/{}", row.storage, row.meter, row.region));
row!(StorageLimit, |row| format!("{}/{}", row.storage, row.key));
table_file!(Sizes, "azure_sizes", [size, outdated, discrepancy]);
table_file!(
    Services,
    "azure_services",
    [service, limit, profile, driver, behaviour, startup, support, region, series_region]
);
table_file!(StorageTable, "azure_storage", [storage, price, limit]);
