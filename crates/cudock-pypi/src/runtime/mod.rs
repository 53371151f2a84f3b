//! ONNX Runtime on this machine: where it is, and how it gets here.

mod cuda;
mod find;
mod install;
mod places;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Serialize;

pub use cuda::{CudaLibraries, MissingLibrary, cuda_libraries};
pub use find::{find, find_all};
pub use install::{Installed, Installer, ensure, wheel_for};
pub use places::Machine;

/// The builds that can be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Package {
    /// For the CPU.
    Onnxruntime,
    /// For the CPU and, with CUDA's libraries beside it, for NVIDIA's GPUs.
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

/// How a library was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum FoundBy {
    /// A variable names it.
    Variable {
        /// `CUDOCK_ONNXRUNTIME` or `ORT_DYLIB_PATH`.
        name: &'static str,
    },
    /// We installed it.
    Cache,
    /// It is in a Python environment.
    Environment {
        /// The environment's folder.
        prefix: String,
        /// `VIRTUAL_ENV`, `CONDA_PREFIX`, `.venv`, `PATH` or `pip install --user`.
        by: &'static str,
    },
    /// It is where the loader looks.
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

/// ONNX Runtime's library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Which build it is. One whose CUDA provider lies beside it is the GPU build.
    pub package: Package,
    /// Its version, where its name or its metadata tells it.
    pub version: Option<String>,
    /// Where it lies.
    pub library: PathBuf,
    /// Providers beside it: `cuda`, `tensorrt`, …
    pub providers: Vec<String>,
    /// How it was found.
    pub found_by: FoundBy,
    /// Whether it is new enough to be loaded: 1.17 or later, or not known.
    pub usable: bool,
}

impl Found {
    /// Whether it will do: the GPU build also runs on the CPU.
    pub fn serves(&self, package: Package) -> bool {
        self.usable && (package == Package::Onnxruntime || self.package == Package::OnnxruntimeGpu)
    }
}
