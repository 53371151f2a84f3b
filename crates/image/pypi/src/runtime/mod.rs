//! Finds and installs ONNX Runtime.

mod context;
mod cuda;
mod find;
mod install;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;

pub use context::SearchContext;
pub use cuda::{CudaLibraries, MissingLibrary, cuda_libraries};
pub use find::{find, find_all};
pub use install::{Installed, Installer, ensure, wheel_for};

/// The builds that can be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Package {
    /// For the CPU.
    Onnxruntime,
    /// For the CPU and, with CUDA's libraries, for NVIDIA GPUs.
    OnnxruntimeGpu,
}

impl Package {
    /// Its name on package indexes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Onnxruntime => "onnxruntime",
            Self::OnnxruntimeGpu => "onnxruntime-gpu",
        }
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Package {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Onnxruntime, Self::OnnxruntimeGpu]
            .into_iter()
            .find(|package| package.name() == text.replace('_', "-"))
            .ok_or_else(|| format!("`{text}` is neither onnxruntime nor onnxruntime-gpu"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum FoundBy {
    Variable {
        /// `CUDOCK_ONNXRUNTIME` or `ORT_DYLIB_PATH`.
        name: &'static str,
    },
    /// cudock installed it.
    Cache,
    Environment {
        prefix: String,
        /// `VIRTUAL_ENV`, `CONDA_PREFIX`, `.venv`, `PATH` or `pip install --user`.
        by: &'static str,
    },
    /// It is in a directory of the loader.
    System,
}

impl fmt::Display for FoundBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable { name } => f.write_str(name),
            Self::Cache => f.write_str("installed by cudock"),
            Self::Environment { prefix, by } => write!(f, "{prefix} ({by})"),
            Self::System => f.write_str("system"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuntimeLibrary {
    /// The build: the GPU build if there is a CUDA provider in its directory.
    pub package: Package,
    /// Its version, if its name or metadata has one.
    pub version: Option<String>,
    pub library: PathBuf,
    /// Providers in its directory: `cuda`, `tensorrt`, …
    pub providers: Vec<String>,
    pub found_by: FoundBy,
    /// Whether it is new enough: 1.17 or later, or unknown.
    pub usable: bool,
}

impl RuntimeLibrary {
    /// Whether it can be used for a package: the GPU build also runs on the CPU.
    pub fn serves(&self, package: Package) -> bool {
        self.usable && (package == Package::Onnxruntime || self.package == Package::OnnxruntimeGpu)
    }
}
