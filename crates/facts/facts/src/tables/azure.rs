use std::collections::BTreeMap;

use cudock_base::Arch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::table_file;
use crate::version::{Date, DriverVersion};

table_file! {
    /// `azure_sizes.toml`: virtual machine sizes with a GPU.
    pub struct Sizes = "azure_sizes" {
        pub size: Vec<Size> by |row| row.name.clone(),
        pub outdated: Vec<Outdated> by |row| row.choice.clone(),
        /// Contradictions in the documentation, and which statement was used.
        pub discrepancy: Vec<Discrepancy> by |row| format!("{}: {}", row.size, row.text),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    pub name: String,
    pub series: Option<String>,
    pub gpu: Option<String>,
    /// The board, if it is more specific than the GPU.
    pub gpu_board: Option<String>,
    /// Below one for a share of a GPU.
    pub gpu_count: Option<f64>,
    /// Memory of each GPU, or of the share.
    pub gpu_memory_gb: Option<f64>,
    pub vcpu: Option<u32>,
    pub ram_gib: Option<f64>,
    pub temp_disk_gib: Option<u32>,
    pub nvme_disks: Option<u32>,
    pub nvme_gib: Option<u32>,
    pub remote_disks: Option<u32>,
    pub remote_disk_iops: Option<u32>,
    /// Megabytes per second on remote disks.
    pub remote_disk_mbps: Option<u32>,
    /// Megabits per second.
    pub network_mbps: Option<u32>,
    pub nics: Option<u32>,
    pub infiniband: Option<bool>,
    /// Gigabits per second for the machine.
    pub infiniband_gbps: Option<u32>,
    pub nvlink: Option<String>,
    /// The GPUs that `NVLink` connects with each other, if not all of the machine.
    pub nvlink_gpus: Option<u32>,
    /// Whether it is a confidential VM only.
    #[serde(default)]
    pub confidential: bool,
    #[schemars(with = "String")]
    pub cpu_arch: Arch,
    #[serde(default)]
    pub generations: Vec<String>,
    pub driver: Option<SizeDriver>,
    /// The quota family, as Azure spells it.
    pub quota_family: Option<String>,
    #[serde(default)]
    pub aks_node_os: Vec<String>,
    pub spot: Option<bool>,
    pub lifecycle: Lifecycle,
    pub retired_on: Option<Date>,
    pub retires_on: Option<Date>,
    /// Regions where it retires later.
    #[serde(default)]
    pub retired_on_by_region: BTreeMap<String, Date>,
    pub replacement: Option<String>,
    /// Whether it is documented; otherwise only a price is known.
    pub documented: bool,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeDriver {
    /// NVIDIA's data-center driver.
    Cuda,
    /// Azure's build of the GRID driver.
    Grid,
    /// The GRID driver's version 20 line.
    GridV20,
    Rocm,
    Amd,
    /// AMD's driver, on Windows only.
    AmdWindows,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lifecycle {
    Available,
    Retired,
    /// On request.
    Preview,
    PreviewEnded,
    /// Only a price is known.
    #[default]
    Unknown,
    Announced,
}

/// An outdated choice that is still common in tutorials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outdated {
    pub choice: String,
    pub status: String,
    pub retired_on: Option<Date>,
    pub use_instead: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discrepancy {
    pub size: String,
    pub text: String,
    pub source: Vec<String>,
}

table_file! {
    /// `azure_services.toml`: the services that can hold a GPU container.
    pub struct Services = "azure_services" {
        pub service: Vec<Service> by |row| row.id.clone(),
        pub limit: Vec<ServiceLimit> by |row| format!("{}/{}", row.service, row.key),
        pub profile: Vec<Profile> by |row| row.name.clone(),
        pub driver: Vec<AzureDriver> by |row| {
            let version = row.version.map_or_else(String::new, |version| version.to_string());
            format!("{}/{}/{:?}/{version}", row.service, row.applies_to, row.kind)
        },
        /// Unexpected behavior.
        pub behavior: Vec<Behavior> by |row| format!("{}/{}", row.service, row.id),
        pub startup: Vec<Startup> by |row| format!("{}/{}", row.service, row.figure),
        /// Which service supports which series.
        pub support: Vec<Support> by |row| format!("{}/{}", row.service, row.series),
        pub region: Vec<Region> by |row| row.name.clone(),
        /// Series that are only in some regions.
        pub series_region: Vec<SeriesRegions> by |row| row.series.clone(),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// aci, container-apps, ml, batch, vm, aks
    pub id: String,
    pub name: String,
    pub resource_types: Vec<String>,
    pub api_versions: Vec<String>,
    pub gpu: ServiceGpu,
    pub gpu_retired_on: Option<Date>,
    pub gpu_note: Option<String>,
    pub replacement: Option<String>,
    pub billing: String,
    pub per_second: bool,
    /// Whether it is free while idle.
    pub scale_to_zero: bool,
    pub spot: Option<String>,
    pub gpus_per_instance: Option<String>,
    #[schemars(with = "Vec<String>")]
    pub cpu_arch: Vec<Arch>,
    pub max_image_gb: Option<u32>,
    pub quota: String,
    pub cold_start: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceGpu {
    Available,
    Retired,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceLimit {
    pub service: String,
    pub key: String,
    /// The figure with its unit.
    pub value: String,
    pub note: Option<String>,
    pub source: Vec<String>,
}

/// A GPU workload profile of Container Apps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub service: String,
    pub name: String,
    /// consumption or dedicated
    pub plan: String,
    pub gpu: String,
    pub gpu_count: u32,
    pub vcpu: u32,
    pub memory_gib: u32,
    #[serde(default)]
    pub regions: Vec<String>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AzureDriver {
    pub service: String,
    /// The sizes, as text.
    pub applies_to: String,
    /// The series it is for; empty for all sizes of this kind that no other row of the service covers.
    #[serde(default)]
    pub series: Vec<String>,
    pub kind: SizeDriver,
    pub version: Option<DriverVersion>,
    /// Its branch, if the version is unknown.
    pub branch: Option<u16>,
    /// The image or extension that contains it.
    pub image: Option<String>,
    /// The date of that image.
    pub as_of: Option<Date>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Support {
    /// The service, or a part of it: `ml-cluster`.
    pub service: String,
    pub series: String,
    pub value: SupportValue,
    /// Whether the source is about a related service.
    #[serde(default)]
    pub inferred: bool,
    /// Whether the user installs the driver.
    #[serde(default)]
    pub own_driver: bool,
    pub as_of: Date,
    pub note: Option<String>,
    pub source: Vec<String>,
}

/// The support for a series on a service, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SupportValue {
    Documented,
    /// Not documented, but known to work.
    InUse,
    NotListed,
    /// The documentation says that it is not supported.
    Refused,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    pub name: String,
    /// Whether it is on the list of public regions.
    #[serde(default = "yes")]
    pub listed: bool,
    /// The cloud it belongs to, if not the public one.
    pub cloud: Option<String>,
    /// Whether access has to be requested.
    #[serde(default)]
    pub restricted: bool,
    #[serde(default = "yes")]
    pub zones: bool,
    pub note: Option<String>,
    pub as_of: Date,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesRegions {
    pub series: String,
    pub regions: Vec<String>,
    pub complete: bool,
    pub as_of: Date,
    pub note: Option<String>,
    pub source: Vec<String>,
}

const fn yes() -> bool {
    true
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Behavior {
    /// The service's id, or "spot", "quota".
    pub service: String,
    pub id: String,
    pub text: String,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Startup {
    pub service: String,
    pub figure: String,
    pub note: Option<String>,
    pub source: Vec<String>,
}

table_file! {
    /// `azure_storage.toml`: kinds of storage.
    pub struct StorageTable = "azure_storage" {
        pub storage: Vec<Storage> by |row| row.id.clone(),
        pub price: Vec<StoragePrice> by |row| format!("{}/{}/{}", row.storage, row.meter, row.region),
        pub limit: Vec<StorageLimit> by |row| format!("{}/{}", row.storage, row.key),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    pub id: String,
    pub name: String,
    pub kind: StorageKind,
    pub max_gib: Option<u64>,
    /// Megabytes per second at most.
    pub max_mbps: Option<f64>,
    pub max_iops: Option<u32>,
    pub os_disk: Option<bool>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorageKind {
    /// In the machine.
    Local,
    Disk,
    Object,
    File,
    Lustre,
}

/// How data is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DataAccess {
    /// From its storage, while the GPU works.
    Stream,
    /// Copied to the machine's local disk first.
    Stage,
    /// Whichever is cheaper.
    Either,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoragePrice {
    pub storage: String,
    pub meter: String,
    pub usd: f64,
    pub region: String,
    pub as_of: Date,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageLimit {
    pub storage: String,
    pub key: String,
    /// The figure with its unit.
    pub value: String,
    pub note: Option<String>,
    pub source: Vec<String>,
}
