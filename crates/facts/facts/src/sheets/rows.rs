//! The rows of look-ups in JSON: rows of the tables, and what a look-up of one entry combines.

use cudock_base::Usd;
use pep440_rs::Version;
use schemars::JsonSchema;
use serde::Serialize;

use crate::TableSummary;
use crate::sheets::azure::LifecycleRow;
use crate::tables::{
    AzureDriver, Behavior, Branch, ComponentSet, Gpu, GpuPackage, ImageRequirement, JaxPlugin, MinorCompat,
    OnnxruntimeGpu, PriceRow, Profile, Release, Service, ServiceLimit, Size, Storage, StorageLimit,
    StoragePrice, TagStatus, Tags, TensorRt, TensorflowRelease, Toolkit, TorchBuild, TorchRelease,
};
use crate::version::{CudaRelease, CudaVersion, DriverVersion};

/// One of the rows that a look-up can return, for the schema of `cudock facts`.
#[derive(JsonSchema)]
#[serde(untagged)]
pub enum FactRow<'a> {
    Table(TableSummary),
    Gpu(Gpu),
    Branch(Branch),
    Driver(DriverRow<'a>),
    Toolkit(Toolkit),
    OneToolkit(ToolkitRow<'a>),
    Arch(ArchRow<'a>),
    Tags(Tags),
    Image(ImageRow<'a>),
    TorchRelease(TorchRelease),
    Torch(TorchRow<'a>),
    Torchvision(TorchvisionRow<'a>),
    Tensorflow(TensorflowRelease),
    Onnxruntime(OnnxruntimeGpu),
    Jax(JaxPlugin),
    TensorRt(TensorRt),
    GpuPackage(GpuPackage),
    Package(PackageRow<'a>),
    CpuPackage(CpuPackageRow<'a>),
    Size(SizeRow<'a>),
    OneSize(OneSizeRow<'a>),
    SizePrice(SizePriceRow<'a>),
    Lifecycle(LifecycleRow<'a>),
    Service(Service),
    OneService(ServiceRow<'a>),
    Storage(Storage),
    OneStorage(StorageRow<'a>),
}

/// A driver and what it runs.
#[derive(Serialize, JsonSchema)]
pub struct DriverRow<'a> {
    pub(crate) driver: DriverVersion,
    pub(crate) branch: &'a Branch,
    /// Which programs it runs, one statement for each CUDA major.
    pub(crate) runs: &'a [String],
    /// Where the first releases of the branch differ.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) first_releases_run: &'a [String],
    /// The cuda-compat packages that run on it.
    pub(crate) cuda_compat: Vec<CudaVersion>,
}

/// A toolkit with its releases.
#[derive(Serialize, JsonSchema)]
pub struct ToolkitRow<'a> {
    pub(crate) toolkit: &'a Toolkit,
    pub(crate) releases: Vec<&'a Release>,
    pub(crate) minor_compat: Option<&'a MinorCompat>,
    /// Library versions, if one release was named.
    pub(crate) components: Option<&'a ComponentSet>,
}

/// A code target.
#[derive(Serialize, JsonSchema)]
pub struct ArchRow<'a> {
    pub(crate) target: &'a str,
    /// `machine code` or `PTX`.
    pub(crate) kind: &'a str,
    /// The GPUs it runs on.
    pub(crate) runs_on: Vec<&'a str>,
    /// The toolkits that compile for it.
    pub(crate) compiled_by: Vec<CudaVersion>,
}

/// A tag of nvidia/cuda.
#[derive(Serialize, JsonSchema)]
pub struct ImageRow<'a> {
    pub(crate) tag: String,
    /// Whether the tag was seen, in releases whose full list is not known.
    pub(crate) exists: bool,
    pub(crate) status: TagStatus,
    pub(crate) cuda: CudaRelease,
    pub(crate) flavor: &'a str,
    pub(crate) os: &'a str,
    pub(crate) cudnn: Option<&'a [String]>,
    pub(crate) nccl: Option<&'a [String]>,
    /// What the start gate requires of the host.
    pub(crate) requires: Option<&'a ImageRequirement>,
    /// `LD_LIBRARY_PATH` of the image.
    pub(crate) library_path: Option<&'a str>,
    /// Other flavors for the same system.
    pub(crate) others: Vec<String>,
}

/// A `PyTorch` release with its builds.
#[derive(Serialize, JsonSchema)]
pub struct TorchRow<'a> {
    pub(crate) release: &'a TorchRelease,
    pub(crate) builds: &'a [&'a TorchBuild],
}

/// A torchvision release with its `PyTorch` releases.
#[derive(Serialize, JsonSchema)]
pub struct TorchvisionRow<'a> {
    #[schemars(with = "String")]
    pub(crate) torchvision: &'a Version,
    pub(crate) torch: &'a [&'a TorchRelease],
}

/// A package that uses a GPU.
#[derive(Serialize, JsonSchema)]
pub struct PackageRow<'a> {
    pub(crate) name: &'a str,
    pub(crate) gpu: &'a GpuPackage,
    /// The CUDA major in its name.
    pub(crate) cuda_major: Option<u8>,
}

/// A package that does not use a GPU.
#[derive(Serialize, JsonSchema)]
pub struct CpuPackageRow<'a> {
    pub(crate) name: &'a str,
    pub(crate) gpu: (),
}

/// A size in a list.
#[derive(Serialize, JsonSchema)]
pub struct SizeRow<'a> {
    pub(crate) size: &'a Size,
    pub(crate) cheapest: Option<&'a PriceRow<'a>>,
    pub(crate) usd_per_gpu_hour: Option<Usd>,
}

/// A size with its prices.
#[derive(Serialize, JsonSchema)]
pub struct OneSizeRow<'a> {
    pub(crate) size: &'a Size,
    pub(crate) prices: &'a [PriceRow<'a>],
}

/// The price of a size in one region.
#[derive(Serialize, JsonSchema)]
pub struct SizePriceRow<'a> {
    pub(crate) price: &'a PriceRow<'a>,
    pub(crate) usd_per_gpu_hour: Option<Usd>,
    /// Negative if Spot costs more.
    pub(crate) spot_saves_percent: Option<i64>,
}

/// A service with its limits.
#[derive(Serialize, JsonSchema)]
pub struct ServiceRow<'a> {
    pub(crate) service: &'a Service,
    pub(crate) profiles: Vec<&'a Profile>,
    pub(crate) drivers: Vec<&'a AzureDriver>,
    pub(crate) limits: Vec<&'a ServiceLimit>,
    pub(crate) behavior: Vec<&'a Behavior>,
}

/// A kind of storage with its prices and limits.
#[derive(Serialize, JsonSchema)]
pub struct StorageRow<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) prices: Vec<&'a StoragePrice>,
    pub(crate) limits: Vec<&'a StorageLimit>,
}
