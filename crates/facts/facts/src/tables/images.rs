use pep440_rs::Version;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::{TableRule, table_file};
use crate::version::{CudaRelease, CudaVersion, Date};

table_file! {
    /// `images.toml`: the nvidia/cuda images, and others that Dockerfiles start from.
    pub struct Images = "images" {
        pub tag: Vec<Tags> by |row| row.cuda.to_string(),
        pub deleted: Vec<DeletedTag> by |row| row.cuda.clone(),
        /// Requirements that images set for the host, checked before they start.
        pub require: Vec<ImageRequirement> by |row| row.cuda.to_string(),
        pub brand_set: Vec<BrandSet> by |row| row.name.clone(),
        pub library_path: Vec<LibraryPath> by |row| row.from.to_string(),
        /// Sizes that the flavors of a release add to each other.
        pub flavor_size: Vec<FlavorSize> by |row| row.cuda.to_string(),
        /// Distributions that images are built on.
        pub system: Vec<System> by |row| row.os.clone(),
        /// Repositories of NVIDIA's that are gone.
        pub renamed: Vec<RenamedImage> by |row| row.repository.clone(),
        /// Images without anything that uses a GPU.
        pub plain: Vec<PlainImage> by |row| row.repository.clone(),
        pub framework: Vec<FrameworkImage> by |row| format!("{}:{}", row.repository, row.tag),
        pub rule: Vec<TableRule>,
    }
}

/// Lower bounds of what each flavor of a release adds to the one it is built on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlavorSize {
    pub cuda: CudaRelease,
    pub runtime_mib: u64,
    pub devel_mib: u64,
    pub cudnn_mib: Option<u64>,
    pub source: Vec<String>,
}

/// A release of a distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The system as tags of nvidia/cuda write it: "ubuntu22.04".
    pub os: String,
    pub name: String,
    pub repository: String,
    /// Its tags there: number and code name.
    pub tags: Vec<String>,
    pub glibc: Option<Version>,
    /// The end of free updates.
    pub end_of_life: Option<Date>,
    /// The host that holds its packages since they were taken off the usual mirrors.
    pub packages_moved_to: Option<String>,
    pub source: Vec<String>,
}

/// A repository that is no longer filled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenamedImage {
    pub repository: String,
    pub text: String,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlainImage {
    pub repository: String,
    /// A tag that pins a release, for generated Dockerfiles.
    pub tag: Option<String>,
    pub source: Vec<String>,
}

/// Images of a framework, whose tags contain its version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameworkImage {
    pub repository: String,
    /// How tags are written: "{version}-cuda{cuda}-cudnn{cudnn}-{flavor}".
    pub tag: String,
    pub package: String,
    /// Whether the CUDA libraries that the framework needs are in it.
    pub gpu: bool,
    /// Flavors that rest on an nvidia/cuda image and have its start condition; "*" for all.
    #[serde(default)]
    pub on_cuda_image: Vec<String>,
    /// The first version of which the image holds the wheel; those before hold the build of the framework's conda channel.
    pub conda_before: Option<Version>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tags {
    pub cuda: CudaRelease,
    pub status: TagStatus,
    pub grid: Vec<TagGrid>,
    /// cuDNN in the cudnn flavors on Ubuntu.
    #[serde(default)]
    pub cudnn: Vec<String>,
    /// NCCL in the runtime flavors on Ubuntu.
    #[serde(default)]
    pub nccl: Vec<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TagStatus {
    Supported,
    /// Past its end: may be deleted any day.
    Unsupported,
    /// Seen in use; the full list of its release is not known.
    Seen,
}

/// Flavors that exist on each of the named systems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TagGrid {
    /// "base", "cudnn-runtime" …
    pub flavors: Vec<String>,
    pub os: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeletedTag {
    /// "10.2" or "11.7.0"
    pub cuda: String,
    pub source: Vec<String>,
}

/// An image's `NVIDIA_REQUIRE_CUDA`, taken apart: CUDA at least `minimum`, or one of the branches on a card of
/// the brand set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageRequirement {
    pub cuda: CudaRelease,
    /// `cuda>=`
    pub minimum: CudaVersion,
    /// Branches accepted for Tesla alone.
    #[serde(default)]
    pub tesla: Vec<u16>,
    /// Branches accepted for all brands, GeForce too.
    #[serde(default)]
    pub with_geforce: Vec<u16>,
    /// Branches accepted for brands without GeForce and Titan.
    #[serde(default)]
    pub datacenter: Vec<u16>,
    /// Terms without a brand.
    #[serde(default)]
    pub any_brand: Vec<String>,
    /// Set where the arm64 image has the minimum and nothing else.
    #[serde(default)]
    pub arm64_only_minimum: bool,
    pub note: Option<String>,
    pub source: Vec<String>,
}

/// A set of brands used by [`ImageRequirement`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrandSet {
    /// "tesla", "`with_geforce`", "datacenter"
    pub name: String,
    pub brands: Vec<String>,
    pub source: Vec<String>,
}

/// The images' `LD_LIBRARY_PATH` over a range of releases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibraryPath {
    pub from: CudaRelease,
    /// Last release; open where it still holds.
    pub to: Option<CudaRelease>,
    pub value: String,
    pub source: Vec<String>,
}

table_file! {
    /// `forward_compat.toml`: newer user-space drivers on older kernel drivers.
    pub struct ForwardCompat = "forward_compat" {
        pub package: Vec<CompatPackage> by |row| row.cuda.to_string(),
        /// Notes in the libraries about supported drivers.
        pub elf_note: Vec<ElfNote> by |row| row.file.clone(),
        pub rule: Vec<TableRule>,
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompatPackage {
    /// 13.0 of cuda-compat-13-0.
    pub cuda: CudaVersion,
    pub supported: Vec<u16>,
    /// The branch that has this CUDA by itself.
    pub native: Vec<u16>,
    /// Branches newer than the package.
    pub unsupported: Vec<u16>,
    pub source: Vec<String>,
}

/// The driver branches and brands allowed by a compat libcuda's ELF note.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElfNote {
    /// libcuda.so.590.44.01
    pub file: String,
    pub cuda: CudaVersion,
    pub branches: Vec<u16>,
    pub brands: Vec<u8>,
    pub note: Option<String>,
    pub source: Vec<String>,
}
