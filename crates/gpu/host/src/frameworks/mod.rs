//! Finds the framework builds in a Python environment, with what the fact tables know about them.
//!
//! The version of a framework does not determine its CUDA version: that is in a separate file, in a local version, in a
//! plugin, or depends on which of two packages is installed. [`builds`] finds it.

mod jax;
mod onnxruntime;
mod tensorflow;
mod torch;

use cudock_base::Arch;
use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::version::{Capability, CudaVersion, DriverVersion, PtxArch, PtxIsa, SmArch};
use serde::Serialize;

use crate::host::{Distribution, PythonEnvironment};

/// An installed framework.
#[derive(Debug, Clone, Serialize)]
pub struct Build {
    /// `torch`, `tensorflow`, `onnxruntime-gpu`, `jax` …
    pub name: String,
    /// `2.11.0+cu130`
    pub version: String,
    /// `CUDA 13.0 build`
    pub label: String,
    pub path: Option<String>,
    pub support: Support,
    pub cuda_major: Option<u8>,
    /// The CUDA version it was built for.
    pub cuda: Option<CudaVersion>,
    /// Its own minimum driver, if it differs from that of its CUDA version.
    pub min_driver: Option<DriverVersion>,
    /// Its SASS; none if unknown.
    pub sass: Option<Vec<SmArch>>,
    /// Its PTX; none if unknown.
    pub ptx: Option<Vec<PtxArch>>,
    pub ptx_isa: Option<PtxIsa>,
    /// Libraries it loads at run time.
    pub needs: Vec<String>,
    /// The effect if one of them is missing.
    pub without: MissingLibraryEffect,
}

/// Whether a build supports NVIDIA GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    Cuda,
    /// It was built for the CPU only.
    Cpu {
        /// The effect that the user sees.
        reason: String,
        /// How serious this is on a machine with a GPU: an error where it is never intended, a note where it often is.
        severity: Severity,
        /// The build to install instead.
        fix: String,
    },
    /// It was built for AMD GPUs.
    OtherVendor {
        /// The build to install instead.
        fix: String,
    },
    NotInTables {
        /// How to find out.
        fix: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingLibraryEffect {
    ImportFails,
    /// It starts, but uses the CPU.
    UsesCpu {
        fix: String,
        how: String,
        /// Whether libraries in wheels are only found after the program has loaded them.
        loads_first: bool,
    },
}

/// All builds in an environment.
pub fn builds(facts: &Facts, python: &PythonEnvironment, cpu_arch: Arch) -> Vec<Build> {
    let mut builds = Vec::new();
    builds.extend(torch::build(facts, python, cpu_arch));
    builds.extend(tensorflow::builds(facts, python));
    builds.extend(onnxruntime::builds(facts, python));
    builds.extend(jax::build(facts, python));
    builds
}

impl Build {
    fn of(found: &Distribution, label: impl Into<String>, support: Support) -> Self {
        let path = Some(found.path.clone());
        Self::new(&found.name, found.version.to_string(), label.into(), path, support)
    }

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
            without: MissingLibraryEffect::ImportFails,
        }
    }

    /// The fix for a build without code for these compute capabilities.
    pub fn fix_for_no_code(
        &self,
        facts: &Facts,
        capabilities: &[Capability],
        driver: Option<DriverVersion>,
    ) -> String {
        match self.name.as_str() {
            "torch" => torch::fix_for_no_code(facts, &self.version, capabilities, driver),
            "tensorflow" => "use a newer TensorFlow, or NVIDIA's container image".to_owned(),
            "onnxruntime-gpu" => {
                "use a release with code for this GPU (`cudock facts onnxruntime`)".to_owned()
            }
            "jax" => "use a newer JAX".to_owned(),
            name => format!("use a release of {name} with code for this GPU"),
        }
    }

    /// The fix if `driver` is older than `needed`.
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
                        ", or install a build for an older CUDA: torch {version}+{} is the newest that this driver supports",
                        build.tag
                    ),
                    None => String::new(),
                };
                format!("update the driver to {needed} or newer{other}")
            }
            "onnxruntime-gpu" => {
                "update the driver, or use a release for an older CUDA (`cudock facts onnxruntime`)"
                    .to_owned()
            }
            "jax" if self.cuda_major != Some(12) && starts(CudaVersion::new(12, 1)) => {
                "update the driver, or pip install 'jax[cuda12]'".to_owned()
            }
            _ => "update the driver".to_owned(),
        }
    }
}

fn ptx_isa(facts: &Facts, cuda: Option<CudaVersion>) -> Option<PtxIsa> {
    facts.toolkits().toolkit(cuda?).map(|toolkit| toolkit.ptx_isa)
}
