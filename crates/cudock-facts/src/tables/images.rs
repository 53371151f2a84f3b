use pep440_rs::Version;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::{Header, TableRule, row, table_file};
use crate::version::{CudaRelease, CudaVersion};

/// `images.toml`: the nvidia/cuda images, and others that Dockerfiles start from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    pub table: Header,
    /// Tags by CUDA release.
    #[serde(default)]
    pub tag: Vec<Tags>,
    /// Releases whose tags are gone.
    #[serde(default)]
    pub deleted: Vec<DeletedTag>,
    /// What each image demands of the host before it starts.
    #[serde(default)]
    pub require: Vec<ImageRequirement>,
    /// The brands behind the names in `require`.
    #[serde(default)]
    pub brand_set: Vec<BrandSet>,
    /// The images' `LD_LIBRARY_PATH`.
    #[serde(default)]
    pub library_path: Vec<LibraryPath>,
    /// Repositories of NVIDIA's that are gone.
    #[serde(default)]
    pub renamed: Vec<RenamedImage>,
    /// Images without anything that uses a GPU.
    #[serde(default)]
    pub plain: Vec<PlainImage>,
    /// Images that hold a framework.
    #[serde(default)]
    pub framework: Vec<FrameworkImage>,
    /// Rules that apply to all rows.
    #[serde(default)]
    pub rule: Vec<TableRule>,
}

/// A repository that is no longer filled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenamedImage {
    /// "nvidia/cuda-arm64"
    pub repository: String,
    pub text: String,
    pub source: Vec<String>,
}

/// An image without CUDA and without a framework.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlainImage {
    /// "python", "debian" …
    pub repository: String,
    pub source: Vec<String>,
}

/// Images of a framework, whose tags tell its version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameworkImage {
    /// "pytorch/pytorch"
    pub repository: String,
    /// How tags are written: "{version}-cuda{cuda}-cudnn{cudnn}-{flavour}".
    pub tag: String,
    /// The Python package in it.
    pub package: String,
    /// Whether the CUDA libraries that the framework needs are in it.
    pub gpu: bool,
    /// Flavours that rest on an nvidia/cuda image and have its start condition; "*" for all.
    #[serde(default)]
    pub on_cuda_image: Vec<String>,
    /// The first version of which the image holds the wheel; those before hold the build of the framework's conda channel.
    pub conda_before: Option<Version>,
    pub source: Vec<String>,
}

/// The tags of one CUDA release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tags {
    pub cuda: CudaRelease,
    /// Whether NVIDIA still builds them.
    pub status: TagStatus,
    /// Which flavours there are on which systems.
    pub grid: Vec<TagGrid>,
    /// cuDNN in the cudnn flavours on Ubuntu.
    #[serde(default)]
    pub cudnn: Vec<String>,
    /// NCCL in the runtime flavours on Ubuntu.
    #[serde(default)]
    pub nccl: Vec<String>,
    pub source: Vec<String>,
}

/// Whether a tag is still built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TagStatus {
    Supported,
    /// Past its end: may be deleted any day.
    Unsupported,
    /// Seen in use; the full list of its release is not known.
    Seen,
}

/// Flavours that exist on each of the named systems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TagGrid {
    /// "base", "cudnn-runtime" …
    pub flavours: Vec<String>,
    /// "ubuntu22.04" …
    pub os: Vec<String>,
}

/// A release whose tags were deleted.
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
    /// NVML brand names.
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

/// `forward_compat.toml`: newer user-space drivers on older kernel drivers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwardCompat {
    pub table: Header,
    /// cuda-compat packages and the branches they run on.
    #[serde(default)]
    pub package: Vec<CompatPackage>,
    /// What the libraries say of themselves.
    #[serde(default)]
    pub elf_note: Vec<ElfNote>,
    /// Rules that apply to all rows.
    #[serde(default)]
    pub rule: Vec<TableRule>,
}

/// A cuda-compat package and the branches below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompatPackage {
    /// 13.0 of cuda-compat-13-0.
    pub cuda: CudaVersion,
    /// Branches it runs on.
    pub supported: Vec<u16>,
    /// The branch that has this CUDA by itself.
    pub native: Vec<u16>,
    /// Branches newer than the package.
    pub unsupported: Vec<u16>,
    pub source: Vec<String>,
}

/// What a compat libcuda's ELF note allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElfNote {
    /// libcuda.so.590.44.01
    pub file: String,
    pub cuda: CudaVersion,
    pub branches: Vec<u16>,
    /// NVML brand numbers listed.
    pub brands: Vec<u8>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

row!(Tags, |row| row.cuda.to_string());
row!(DeletedTag, |row| row.cuda.clone());
row!(ImageRequirement, |row| row.cuda.to_string());
row!(BrandSet, |row| row.name.clone());
row!(RenamedImage, |row| row.repository.clone());
row!(PlainImage, |row| row.repository.clone());
row!(FrameworkImage, |row| format!("{}:{}", row.repository, row.tag));
row!(LibraryPath, |row| row.from.to_string());
row!(CompatPackage, |row| row.cuda.to_string());
row!(ElfNote, |row| row.file.clone());
table_file!(
    Images,
    "images",
    [tag, deleted, require, brand_set, library_path, renamed, plain, framework, rule]
);
table_file!(ForwardCompat, "forward_compat", [package, elf_note, rule]);
