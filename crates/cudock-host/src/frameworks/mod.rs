//! Which builds of which frameworks a Python environment holds, and what the tables know of them.
//!
//! A framework's version says nothing about its CUDA: that is in a file of its own, in a local version, in a plugin
//! beside it or in which of two packages was installed. [`builds`] finds it out once, for everyone who judges.

mod jax;
mod onnxruntime;
mod tensorflow;
mod torch;

use cudock_facts::Facts;
use cudock_facts::version::{Capability, CudaVersion, DriverVersion, PtxArch, PtxIsa, SmArch};
use serde::Serialize;

use crate::host::PythonEnvironment;

/// A framework as it is installed.
#[derive(Debug, Clone, Serialize)]
pub struct Build {
    /// torch, tensorflow, onnxruntime-gpu, jax …
    pub name: String,
    /// 2.11.0+cu130
    pub version: String,
    /// "CUDA 13.0 build"
    pub label: String,
    /// Where its metadata is.
    pub path: Option<String>,
    /// Whether it can use an NVIDIA GPU at all.
    pub support: Support,
    /// The CUDA major it was built for.
    pub cuda_major: Option<u8>,
    /// The CUDA version it was built for.
    pub cuda: Option<CudaVersion>,
    /// The lowest driver it accepts by its own rule, where that is not its CUDA's.
    pub min_driver: Option<DriverVersion>,
    /// Its machine code; none if the tables do not say.
    pub sass: Option<Vec<SmArch>>,
    /// Its PTX; none if the tables do not say.
    pub ptx: Option<Vec<PtxArch>>,
    /// The language its PTX is written in.
    pub ptx_isa: Option<PtxIsa>,
    /// Libraries it loads when it is used.
    pub needs: Vec<String>,
    /// What happens when one of them is missing.
    pub without: Without,
}

/// Whether a build can use an NVIDIA GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// It can.
    Cuda,
    /// It was built without.
    Cpu {
        /// What its user sees.
        reason: String,
        /// How much that is worth: many packages pull in a CPU build for small work.
        alarm: Alarm,
        /// What to install instead.
        fix: String,
    },
    /// It was built for AMD's.
    OtherVendor {
        /// What to install instead.
        fix: String,
    },
    /// It is not in the tables.
    NotInTables {
        /// How to find out.
        fix: String,
    },
}

/// How much a CPU build beside a GPU is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alarm {
    /// Nobody wants that.
    Problem,
    /// It may be meant.
    Warning,
    /// It is often meant.
    Note,
}

/// What happens without a library that is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Without {
    /// Importing it fails.
    ImportFails,
    /// It starts, and uses the CPU.
    UsesCpu {
        /// What to install.
        fix: String,
        /// How it goes, in words.
        how: String,
        /// Whether libraries in wheels are found only after the program has loaded them.
        loads_first: bool,
    },
}

/// All builds in an environment. `cpu_arch` is the machine's: `x86_64` or aarch64.
pub fn builds(facts: &Facts, python: &PythonEnvironment, cpu_arch: &str) -> Vec<Build> {
    let mut builds = Vec::new();
    builds.extend(torch::build(facts, python, cpu_arch));
    builds.extend(tensorflow::builds(facts, python));
    builds.extend(onnxruntime::builds(facts, python));
    builds.extend(jax::build(facts, python));
    builds
}

impl Build {
    fn new(name: &str, version: String, label: String, path: Option<String>, support: Support) -> Self {
        Self {
            name: name.to_owned(),
            version,
            label,
            path,
            support,
            cuda_major: None,
            cuda: None,
            min_driver: None,
            sass: None,
            ptx: None,
            ptx_isa: None,
            needs: Vec::new(),
            without: Without::ImportFails,
        }
    }

    /// What to do where it has no code for cards of these capabilities.
    pub fn fix_for_no_code(
        &self,
        facts: &Facts,
        cards: &[Capability],
        driver: Option<DriverVersion>,
    ) -> String {
        match self.name.as_str() {
            "torch" => torch::fix_for_no_code(facts, &self.version, cards, driver),
            "tensorflow" => "take a newer TensorFlow, or NVIDIA's container of it".to_owned(),
            "onnxruntime-gpu" => {
                "take a release with code for this GPU (`cudock facts onnxruntime`)".to_owned()
            }
            "jax" => "take a newer JAX".to_owned(),
            name => format!("take a release of {name} with code for this GPU"),
        }
    }

    /// What to do where `driver` is older than `needed`.
    pub fn fix_for_old_driver(
        &self,
        facts: &Facts,
        needed: Option<DriverVersion>,
        driver: Option<DriverVersion>,
    ) -> String {
        let starts =
            |cuda: CudaVersion| driver.is_none_or(|driver| facts.drivers().runs_toolkit(driver, cuda));
        match self.name.as_str() {
            "torch" => {
                let needed = needed.map_or_else(|| "a newer branch".to_owned(), |driver| driver.to_string());
                let other = match facts.frameworks().newest_torch(facts.drivers(), driver, &[]) {
                    Some((version, build)) => format!(
                        ", or install a build for an older CUDA: torch {version}+{} is the newest that this driver starts",
                        build.tag
                    ),
                    None => String::new(),
                };
                format!("update the driver to {needed} or newer{other}")
            }
            "onnxruntime-gpu" => {
                "update the driver, or take a release for an older CUDA (`cudock facts onnxruntime`)"
                    .to_owned()
            }
            "jax" if self.cuda_major != Some(12) && starts(CudaVersion::new(12, 1)) => {
                "update the driver, or pip install 'jax[cuda12]'".to_owned()
            }
            _ => "update the driver".to_owned(),
        }
    }
}

/// The PTX language of a toolkit.
fn ptx_isa(facts: &Facts, cuda: Option<CudaVersion>) -> Option<PtxIsa> {
    facts.toolkits().toolkit(cuda?).map(|toolkit| toolkit.ptx_isa)
}
