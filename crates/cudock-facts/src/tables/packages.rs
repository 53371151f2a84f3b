use pep440_rs::Version;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::{Header, row, table_file};
use crate::version::{Capability, CudaVersion, PtxArch, SmArch};

/// `packages.toml`: which Python and conda packages use a GPU, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    pub table: Header,
    #[serde(default)]
    pub gpu: Vec<GpuPackage>,
    #[serde(default)]
    pub no_gpu: Vec<CpuPackages>,
    /// GPU code of conda builds.
    #[serde(default)]
    pub conda_build: Vec<CondaBuild>,
    /// Packages that require one exact version of another.
    #[serde(default)]
    pub pin: Vec<Pins>,
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

/// Packages that do not use a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuPackages {
    /// Their purpose.
    pub area: String,
    pub names: Vec<String>,
    pub source: Vec<String>,
}

/// The GPU code of a package in a conda channel, built for one CUDA.
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
    /// Releases and the version each requires.
    pub releases: Vec<Pin>,
    pub source: Vec<String>,
}

/// A release and the version of the other package that it requires.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub version: Version,
    pub needs: Version,
}

row!(GpuPackage, |row| row.name.clone());
row!(CpuPackages, |row| row.area.clone());
row!(Pins, |row| format!("{} {}", row.package, row.requires));
row!(CondaBuild, |row| format!("{}::{} {}", row.channel, row.package, row.cuda));
table_file!(Packages, "packages", [gpu, no_gpu, conda_build, pin]);
