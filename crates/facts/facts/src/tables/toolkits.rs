use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::table_file;
use crate::version::{Capability, CudaRelease, CudaVersion, Date, DriverVersion, PtxIsa, SmArch};

table_file! {
    /// `drivers.toml`: driver branches.
    pub struct Drivers = "drivers" {
        pub branch: Vec<Branch> by |row| format!("R{}", row.branch),
        pub minor_compat: Vec<MinorCompat> by |row| format!("CUDA {}", row.cuda_major),
        pub architecture: Vec<Architecture> by |row| row.name.clone(),
        /// NVML's numbers for brands.
        pub brand: Vec<Brand> by |row| row.number.to_string(),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// 535 of R535.
    pub branch: u16,
    /// The newest CUDA it implements, which nvidia-smi prints.
    pub cuda: CudaVersion,
    /// The newest PTX its compiler accepts.
    pub ptx_isa: PtxIsa,
    pub kind: Option<BranchKind>,
    pub first_release: Option<Date>,
    pub latest_linux: Option<DriverVersion>,
    pub latest_windows: Option<DriverVersion>,
    pub end_of_life: Option<Date>,
    /// End of support on NVIDIA's page, by month, if it differs.
    pub end_of_life_vendor: Option<String>,
    pub oldest_architecture: String,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BranchKind {
    /// Long-term support: three years.
    Lts,
    /// Production: one year.
    Production,
    /// New features: until the next one; not a base for forward compatibility.
    NewFeature,
    Developer,
}

/// The lowest driver on which every toolkit of a major version runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MinorCompat {
    /// 12 for CUDA 12.x.
    pub cuda_major: u8,
    pub min_linux: DriverVersion,
    /// On Windows, and so under WSL2.
    pub min_windows: Option<DriverVersion>,
    /// First branch of the documented range.
    pub first_branch: u16,
    /// First branch after the documented range, from which backward compatibility applies.
    pub last_branch_exclusive: Option<u16>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    pub name: String,
    pub capabilities: Vec<Capability>,
    pub first_toolkit: Option<CudaVersion>,
    pub last_toolkit: Option<CudaVersion>,
    pub last_driver_branch: Option<u16>,
    /// First toolkits of single capabilities.
    #[serde(default)]
    pub first_toolkit_of: BTreeMap<Capability, CudaVersion>,
    /// Last toolkits of single capabilities.
    #[serde(default)]
    pub last_toolkit_of: BTreeMap<Capability, CudaVersion>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Brand {
    pub number: u8,
    /// The name `NVIDIA_REQUIRE_*` uses.
    pub name: String,
    pub source: Vec<String>,
}

table_file! {
    /// `toolkits.toml`: what each CUDA toolkit compiles for and needs.
    pub struct Toolkits = "toolkits" {
        pub toolkit: Vec<Toolkit> by |row| row.cuda.to_string(),
        pub release: Vec<Release> by |row| row.cuda.to_string(),
        pub soname: Vec<Soname> by |row| row.library.clone(),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Toolkit {
    pub cuda: CudaVersion,
    pub sass: Vec<SmArch>,
    /// The PTX it writes.
    pub ptx_isa: PtxIsa,
    /// The branch with the same CUDA version.
    pub driver_branch: Option<u16>,
    pub default_arch: Option<SmArch>,
    pub gcc_max: Option<u8>,
    pub clang_max: Option<u8>,
    /// cuDNN in NVIDIA's own cudnn image.
    pub cudnn_in_image: Option<String>,
    /// Whether only some of its components are known.
    #[serde(default)]
    pub partial: bool,
    pub change: Option<String>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

/// A toolkit release and the drivers that go with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    pub cuda: CudaRelease,
    /// "12.4 Update 1"
    pub label: String,
    /// Driver for the full feature set on Linux.
    pub min_linux: Option<DriverVersion>,
    /// Driver for the full feature set on Windows.
    pub min_windows: Option<DriverVersion>,
    /// Driver packed in the Linux installer.
    pub runfile_driver: Option<DriverVersion>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

/// A library's SONAMEs, which do not follow the toolkit's major version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Soname {
    pub library: String,
    #[serde(default)]
    pub cuda11: Vec<String>,
    #[serde(default)]
    pub cuda12: Vec<String>,
    #[serde(default)]
    pub cuda13: Vec<String>,
    /// SONAMEs from the host's driver, for all toolkits.
    #[serde(default)]
    pub driver: Vec<String>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

table_file! {
    /// `components.toml`: which library versions belong to which toolkit release.
    pub struct Components = "components" {
        pub components: Vec<ComponentSet> by |row| row.cuda.to_string(),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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
