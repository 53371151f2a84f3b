//! The rows of each table, as the data files write them.
//!
//! These types are read three times: by the build script, which turns `data/` into the embedded form; at run
//! time from that form; and at run time from a user's overlay. So a field is described once, here, and a data
//! file that does not fit does not build.

mod azure;
mod findings;
mod frameworks;
mod gpus;
mod header;
mod images;
mod messages;
mod meters;
mod packages;
mod prices;
mod runtimes;
mod toolkits;

pub use azure::{
    AzureDriver, Behaviour, Discrepancy, Lifecycle, Outdated, Profile, Region, SeriesRegions, Service,
    ServiceGpu, ServiceLimit, Services, Size, SizeDriver, Sizes, Startup, Storage, StorageKind, StorageLimit,
    StoragePrice, StorageTable, Support, SupportValue,
};
pub use findings::{FindingPage, FindingPages, Group};
pub use frameworks::{
    Frameworks, JaxPlugin, OnnxruntimeGpu, TargetCount, TensorRt, TensorflowRelease, TorchBuild,
    TorchInventory, TorchRelease,
};
pub(crate) use gpus::OfChips;
pub use gpus::{Chip, ForwardCompatClass, Gpu, GpuClass, Gpus, KernelModule, Vendor};
pub use header::{Header, Row, Rule, TableFile, merge};
pub use images::{
    BrandSet, CompatPackage, DeletedTag, ElfNote, ForwardCompat, FrameworkImage, Images, LibraryPath,
    PlainImage, RenamedImage, Requirement, TagGrid, TagStatus, Tags,
};
pub use messages::{Advice, CudaError, Family, Layer, Member, Message, Messages, Phase};
pub use meters::{
    Area, BilledFrom, Billing, Bound, BoundKey, BoundUnit, DiskTier, EndpointSize, Meter, MeterKind, Meters,
    Rounding, StartFigure, StartTimes, Throughput,
};
pub use packages::{CondaBuild, CpuPackages, CudaFrom, GpuPackage, GpuUse, Packages, Pin, Pins};
pub use prices::{PriceRow, PriceSource, Prices, PricesError};
pub use runtimes::{CudaLibrary, RuntimeWheel, Runtimes, WheelMember};
pub use toolkits::{
    Architecture, Branch, BranchKind, Brand, ComponentSet, Components, Drivers, MinorCompat, Release, Soname,
    Toolkit, Toolkits,
};
