use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::header::{Header, row, table_file};
use crate::version::{Capability, CudaRelease, CudaVersion, Date, DriverVersion, PtxIsa, SmArch};

/// `drivers.toml`: driver branches and what they carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drivers {
    /// Age and sources.
    pub table: Header,
    /// Driver branches.
    #[serde(default)]
    pub branch: Vec<Branch>,
    /// From which driver on any toolkit of a major runs.
    #[serde(default)]
    pub minor_compat: Vec<MinorCompat>,
    /// When generations of cards came and go.
    #[serde(default)]
    pub architecture: Vec<Architecture>,
    /// NVML's numbers for brands.
    #[serde(default)]
    pub brand: Vec<Brand>,
}

/// A driver branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// 535 of R535.
    pub branch: u16,
    /// The newest CUDA it implements, which nvidia-smi prints.
    pub cuda: CudaVersion,
    /// The newest PTX its compiler takes.
    pub ptx_isa: PtxIsa,
    /// How long it is kept.
    pub kind: Option<BranchKind>,
    /// First public release.
    pub first_release: Option<Date>,
    /// Newest Linux release seen.
    pub latest_linux: Option<DriverVersion>,
    /// Newest Windows release seen.
    pub latest_windows: Option<DriverVersion>,
    /// End of support.
    pub end_of_life: Option<Date>,
    /// End of support as NVIDIA's page has it, by month, where that is another.
    pub end_of_life_vendor: Option<String>,
    /// The oldest generation it drives.
    pub oldest_architecture: String,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// How long a branch is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BranchKind {
    /// Long-term support: three years.
    Lts,
    /// Production: one year.
    Production,
    /// New features: until the next; no base for forward compatibility.
    NewFeature,
    /// For developers.
    Developer,
}

/// The lowest driver on which every toolkit of a major runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinorCompat {
    /// 12 for CUDA 12.x.
    pub cuda_major: u8,
    /// On Linux.
    pub min_linux: DriverVersion,
    /// On Windows, and so under WSL2.
    pub min_windows: Option<DriverVersion>,
    /// First branch of the documented range.
    pub first_branch: u16,
    /// First branch past the documented range, where backward compatibility takes over.
    pub last_branch_exclusive: Option<u16>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// A generation of cards: which toolkits compile for it, which drivers drive it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Turing, Ampere …
    pub name: String,
    /// Its compute capabilities.
    pub capabilities: Vec<Capability>,
    /// The first toolkit with it.
    pub first_toolkit: Option<CudaVersion>,
    /// The last toolkit with it.
    pub last_toolkit: Option<CudaVersion>,
    /// The last branch that drives it.
    pub last_driver_branch: Option<u16>,
    /// First toolkits of single capabilities.
    #[serde(default)]
    pub first_toolkit_of: BTreeMap<Capability, CudaVersion>,
    /// Last toolkits of single capabilities.
    #[serde(default)]
    pub last_toolkit_of: BTreeMap<Capability, CudaVersion>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// NVML's number for a brand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Brand {
    /// NVML's number.
    pub number: u8,
    /// The name `NVIDIA_REQUIRE_*` uses.
    pub name: String,
    /// Where it was read.
    pub source: Vec<String>,
}

/// `toolkits.toml`: what each CUDA toolkit compiles for and needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toolkits {
    /// Age and sources.
    pub table: Header,
    /// Toolkits by minor version.
    #[serde(default)]
    pub toolkit: Vec<Toolkit>,
    /// Patch releases.
    #[serde(default)]
    pub release: Vec<Release>,
    /// SONAMEs by major.
    #[serde(default)]
    pub soname: Vec<Soname>,
}

/// A toolkit's compiler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toolkit {
    /// 12.4
    pub cuda: CudaVersion,
    /// Targets it assembles for.
    pub sass: Vec<SmArch>,
    /// The PTX it writes.
    pub ptx_isa: PtxIsa,
    /// The branch that carries the same CUDA.
    pub driver_branch: Option<u16>,
    /// What nvcc compiles for when not told.
    pub default_arch: Option<SmArch>,
    /// Newest gcc it takes.
    pub gcc_max: Option<u8>,
    /// Newest clang it takes.
    pub clang_max: Option<u8>,
    /// cuDNN in NVIDIA's own cudnn image.
    pub cudnn_in_image: Option<String>,
    /// Set where only some of its parts have been seen.
    #[serde(default)]
    pub partial: bool,
    /// What it added and dropped.
    pub change: Option<String>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// A toolkit release and the drivers that go with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// 12.4.1
    pub cuda: CudaRelease,
    /// "12.4 Update 1"
    pub label: String,
    /// Driver for the full feature set on Linux.
    pub min_linux: Option<DriverVersion>,
    /// Driver for the full feature set on Windows.
    pub min_windows: Option<DriverVersion>,
    /// Driver packed in the Linux installer.
    pub runfile_driver: Option<DriverVersion>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// A library's SONAMEs: they do not follow the toolkit's major.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Soname {
    /// "cufft"
    pub library: String,
    /// In CUDA 11.
    #[serde(default)]
    pub cuda11: Vec<String>,
    /// In CUDA 12.
    #[serde(default)]
    pub cuda12: Vec<String>,
    /// In CUDA 13.
    #[serde(default)]
    pub cuda13: Vec<String>,
    /// From the host's driver, whatever the toolkit.
    #[serde(default)]
    pub driver: Vec<String>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// `components.toml`: which library versions belong to which toolkit release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Components {
    /// Age and sources.
    pub table: Header,
    /// One row a release.
    #[serde(default)]
    pub components: Vec<ComponentSet>,
}

/// The parts of one toolkit release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "each field is the version of the library it is named after")]
pub struct ComponentSet {
    pub cuda: CudaRelease,
    pub cuda_runtime: Option<String>,
    pub cuda_nvcc: Option<String>,
    pub cuda_nvrtc: Option<String>,
    pub cublas: Option<String>,
    pub cufft: Option<String>,
    pub curand: Option<String>,
    pub cusolver: Option<String>,
    pub cusparse: Option<String>,
    pub nvjitlink: Option<String>,
    pub cuda_cupti: Option<String>,
    pub cufile: Option<String>,
    pub npp: Option<String>,
    pub nvjpeg: Option<String>,
    pub nvtx: Option<String>,
    pub source: Vec<String>,
}

row!(Branch, |row| format!("R{}", row.branch));
row!(MinorCompat, |row| format!("CUDA {}", row.cuda_major));
row!(Architecture, |row| row.name.clone());
row!(Brand, |row| row.number.to_string());
row!(Toolkit, |row| row.cuda.to_string());
row!(Release, |row| row.cuda.to_string());
row!(Soname, |row| row.library.clone());
row!(ComponentSet, |row| row.cuda.to_string());
table_file!(Drivers, "drivers", [branch, minor_compat, architecture, brand]);
table_file!(Toolkits, "toolkits", [toolkit, release, soname]);
table_file!(Components, "components", [components]);
