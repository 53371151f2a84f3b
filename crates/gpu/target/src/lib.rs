//! Targets of a check (GPU, driver, machine, Azure size), and the start gate of containers.
//!
//! Both are apart from the judge, because starting a container needs them without the judge.

mod azure;
mod capability;
mod card;
pub mod codes;
pub mod gate;
mod host;

use std::fmt;

use cudock_base::{Arch, ErrorKind, Report, did_you_mean};
use cudock_facts::Facts;
use cudock_facts::finding::Finding;
use cudock_facts::tables::{ForwardCompatClass, Vendor};
use cudock_facts::version::{Capability, CudaVersion, Date, DriverVersion, PtxIsa};
use cudock_host::host::LibraryKind;
use schemars::JsonSchema;
use serde::Serialize;

pub use capability::{capabilities, capability_named};

/// What a subject is checked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Target {
    /// The GPU, by its name in the tables or in the driver.
    pub gpu: Option<String>,
    pub capability: Option<Capability>,
    pub driver: Option<DriverVersion>,
    pub cuda: Option<CudaVersion>,
    pub sku: Option<String>,
    /// The Azure service whose driver is assumed, if there is a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Other properties that decide a verdict.
    #[serde(skip)]
    pub traits: Traits,
}

/// Other properties of a target that decide a verdict.
#[derive(Debug, Clone)]
pub struct Traits {
    pub vendor: Vendor,
    /// Whether cuda-compat supports it.
    pub forward_compat: ForwardCompatClass,
    /// Its brand in NVML, which container requirements use.
    pub brand: Option<String>,
    pub gpu_count: Option<u32>,
    /// The processor architecture.
    pub cpu: Option<Arch>,
    /// The newest PTX version that the driver supports.
    pub ptx_isa: Option<PtxIsa>,
    /// Whether the driver is that of Windows (WSL2).
    pub wsl: bool,
    /// The branch, if only that was named: its last release is assumed.
    pub branch_only: Option<u16>,
    /// Why this driver is assumed; none if the user named it.
    pub driver_assumed: Option<String>,
    pub start: StartPath,
    pub machine: Option<TargetMachine>,
    /// Findings about the target itself.
    pub notes: Vec<Finding>,
}

/// How containers get their GPU, which decides whether the image's variables are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartPath {
    /// NVIDIA's hook, as with `docker run --gpus`; it evaluates the image's requirements and capabilities.
    #[default]
    Hook,
    /// CDI; it does not evaluate them.
    Cdi,
}

/// The properties of a probed machine.
#[derive(Debug, Clone, Default)]
pub struct TargetMachine {
    /// The libcuda that a program on it would load.
    pub libcuda: Option<HostLibcuda>,
    /// Whether it has the driver's PTX compiler.
    pub has_jit: bool,
    /// The first problem that keeps all programs from using the GPU, with the CUDA error.
    pub blocked: Option<(Option<u16>, Finding)>,
    /// The UUIDs of the GPUs, for `CUDA_VISIBLE_DEVICES`.
    pub uuids: Vec<String>,
}

/// The libcuda that the loader finds first on a machine.
#[derive(Debug, Clone)]
pub struct HostLibcuda {
    pub path: String,
    pub kind: LibraryKind,
    pub version: Option<DriverVersion>,
}

/// An invalid target name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TargetError {
    pub message: String,
    pub near: Vec<String>,
}

impl TargetError {
    fn new(message: String, near: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { message, near: near.into_iter().map(Into::into).collect() }
    }
}

impl Report for TargetError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        let list = "run `cudock facts gpu` or `cudock facts size` for a list".to_owned();
        did_you_mean(&self.near).into_iter().chain([list]).collect()
    }
}

impl Target {
    /// The target that a user names: a GPU, an Azure size as `SIZE` or `SERVICE/SIZE`, or `cpu`, for which there is none.
    pub fn named(
        facts: &Facts,
        name: &str,
        driver: Option<DriverVersion>,
        today: Date,
    ) -> Result<Option<Self>, TargetError> {
        if name.eq_ignore_ascii_case("cpu") {
            return match driver {
                Some(_) => Err(TargetError::new("`cpu` has no driver".to_owned(), [""; 0])),
                None => Ok(None),
            };
        }
        let is_size = name.contains('/') || facts.sizes().contains(name);
        let target = if is_size {
            Self::of_size(facts, name, driver, today)
        } else {
            Self::of_gpu(facts, name, driver)
        };
        target.map(Some)
    }
}

/// "H200 (9.0), driver 580.159.04".
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(sku) = &self.sku {
            write!(f, "{sku}: ")?;
        }
        f.write_str(self.gpu.as_deref().unwrap_or("no GPU"))?;
        if let Some(capability) = self.capability {
            write!(f, " ({capability})")?;
        }
        match self.driver {
            Some(driver) => write!(f, ", driver {driver}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_named_by_gpu_size_or_cpu() {
        let facts = Facts::embedded();
        let named = |name: &str| {
            let target = Target::named(&facts, name, None, "2026-11-15".parse().unwrap());
            target.map(|target| target.map(|target| (target.gpu.unwrap_or_default(), target.sku.is_some())))
        };
        let cases = [
            ("T4", Some(("T4", false))),
            ("Standard_NC4as_T4_v3", Some(("T4", true))),
            ("vm/Standard_NC4as_T4_v3", Some(("T4", true))),
            ("CPU", None),
        ];
        for (name, expected) in cases {
            let expected = expected.map(|(gpu, is_size)| (gpu.to_owned(), is_size));
            assert_eq!(named(name), Ok(expected), "{name}");
        }
        assert!(named("T5").is_err() && named("vm/T4").is_err());
    }
}
