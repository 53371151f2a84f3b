use std::collections::HashMap;

use pep440_rs::Version;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::table_file;
use crate::version::{Capability, CudaVersion, PtxArch, SmArch};

table_file! {
    /// `packages.toml`: which Python and conda packages use a GPU, and how.
    pub struct Packages = "packages" {
        pub gpu: Vec<GpuPackage> by |row| row.name.clone(),
        pub no_gpu: Vec<CpuPackages> by |row| row.area.clone(),
        /// GPU code of conda builds.
        pub conda_build: Vec<CondaBuild> by |row| format!("{}::{} {}", row.channel, row.package, row.cuda),
        /// Packages that require one exact version of another.
        pub pin: Vec<Pins> by |row| format!("{} {}", row.package, row.requires),
        /// Packages that are compiled with nvcc when they are installed.
        pub source_build: Vec<SourceBuild> by |row| row.area.clone(),
        cache by_name: HashMap<String, Option<usize>>,
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuPackage {
    /// Normalized name, without a CUDA suffix: `cupy` stands for `cupy-cuda12x`, too.
    pub name: String,
    pub uses: GpuUse,
    /// Packages it runs on; one of them is enough.
    #[serde(default)]
    pub on: Vec<String>,
    /// CUDA of its wheels, by release; a CUDA suffix in the name takes precedence.
    #[serde(default)]
    pub cuda: Vec<CudaFrom>,
    /// Whether the package without a CUDA suffix is a CPU build.
    #[serde(default)]
    pub plain_is_cpu: bool,
    /// Whether it compiles machine code at run time, and never PTX that later GPUs could run.
    #[serde(default)]
    pub compiles_to_machine_code: bool,
    /// The lowest compute capability its documentation supports.
    pub min_capability: Option<Capability>,
    /// Other packages with the same properties, and names in conda.
    #[serde(default)]
    pub also: Vec<String>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GpuUse {
    /// A framework whose builds are listed in `frameworks.toml`.
    Framework,
    /// Its wheels or its build contain GPU code.
    Code,
    /// It compiles GPU code at run time.
    Compiler,
    /// Another package does the GPU work.
    Wraps,
    /// NVIDIA's library, which other packages load.
    Library,
    /// It only queries the driver.
    Driver,
    /// It uses another API than CUDA, such as Vulkan.
    OtherApi,
}

/// The CUDA major of a package's wheels from a release on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CudaFrom {
    #[schemars(with = "String")]
    pub from: Version,
    pub major: u8,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuPackages {
    pub area: String,
    pub names: Vec<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CondaBuild {
    pub package: String,
    pub channel: String,
    pub cuda: CudaVersion,
    pub sass: Vec<SmArch>,
    pub ptx: Vec<PtxArch>,
    pub source: Vec<String>,
}

/// The exact version of another package that each release of a package requires.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    pub package: String,
    pub requires: String,
    pub releases: Vec<Pin>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub version: Version,
    pub needs: Version,
}

/// Packages of which PyPI has no wheel for Linux, or only of old releases, so that pip compiles them with nvcc.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceBuild {
    pub area: String,
    pub names: Vec<String>,
    /// Whether `TORCH_CUDA_ARCH_LIST` decides what they are compiled for, and not a list of their own.
    pub uses_torch_list: bool,
    /// Whether their setup downloads a wheel from their releases page if one fits.
    pub tries_wheels: bool,
    pub source: Vec<String>,
}
