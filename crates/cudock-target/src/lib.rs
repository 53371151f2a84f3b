//! What a program is judged against: a card, a driver, and what is around them; and the start gate of containers.
//!
//! The judge needs both, and so does whoever starts a container, without needing the judge.

mod azure;
mod capability;
mod card;
pub mod codes;
pub mod gate;
mod host;

use std::fmt;

use cudock_base::{ErrorKind, Report, did_you_mean};
use cudock_facts::finding::Finding;
use cudock_facts::tables::{ForwardCompatClass, KernelModule, Vendor};
use cudock_facts::version::{Capability, CudaVersion, DriverVersion, PtxIsa};
use cudock_host::host::LibraryKind;
use serde::Serialize;

pub use capability::{capabilities, capability_named};

/// A place a subject may run in.
#[derive(Debug, Clone, Serialize)]
pub struct Target {
    /// The card, by the tables' name or the driver's; none if there is none.
    pub gpu: Option<String>,
    /// Its compute capability.
    pub capability: Option<Capability>,
    /// The driver.
    pub driver: Option<DriverVersion>,
    /// The CUDA version the driver carries.
    pub cuda: Option<CudaVersion>,
    /// The Azure size.
    pub sku: Option<String>,
    /// The Azure service that the driver is taken from, where there is a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// What else decides.
    #[serde(skip)]
    pub traits: Traits,
}

/// What else about a target decides.
#[derive(Debug, Clone)]
pub struct Traits {
    /// Who made the card.
    pub vendor: Vendor,
    /// Whether cuda-compat runs on it.
    pub forward_compat: ForwardCompatClass,
    /// Which kernel modules drive it.
    pub modules: Option<KernelModule>,
    /// NVML's brand of it, as container requirements name it.
    pub brand: Option<String>,
    /// How many there are.
    pub gpu_count: Option<u32>,
    /// The processor, as images name it.
    pub cpu: Option<String>,
    /// The PTX the driver understands.
    pub ptx_isa: Option<PtxIsa>,
    /// Whether the driver is Windows', under WSL2.
    pub wsl: bool,
    /// The branch, where the driver was named by its branch alone: its last release is judged.
    pub branch_only: Option<u16>,
    /// Why this driver: none if it was given.
    pub driver_assumed: Option<String>,
    /// How containers are started.
    pub start: StartPath,
    /// What is known of the machine itself.
    pub machine: Option<Machine>,
    /// What is to be said about the target, whatever runs there.
    pub notes: Vec<Finding>,
}

/// How containers get their GPU, which decides who reads the image's variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartPath {
    /// By NVIDIA's hook, as `docker run --gpus` does: the image's requirements and capabilities count.
    #[default]
    Hook,
    /// By CDI: they do not.
    Cdi,
}

/// What is known of a machine that is at hand.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// The libcuda a program started there would load.
    pub libcuda: Option<HostLibcuda>,
    /// Whether the driver's PTX compiler is there.
    pub has_jit: bool,
    /// The first thing that keeps every program from the GPU, with CUDA's error.
    pub blocked: Option<(Option<u16>, Finding)>,
    /// The cards' identities, for `CUDA_VISIBLE_DEVICES`.
    pub uuids: Vec<String>,
}

/// The libcuda that comes first on a machine.
#[derive(Debug, Clone)]
pub struct HostLibcuda {
    /// Where it is.
    pub path: String,
    /// What it is.
    pub kind: LibraryKind,
    /// Its version.
    pub version: Option<DriverVersion>,
    /// Whether `LD_LIBRARY_PATH` leads to it.
    pub by_library_path: bool,
}

/// A name that is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TargetError {
    /// What is wrong.
    pub message: String,
    /// Names that are near.
    pub near: Vec<String>,
}

impl Report for TargetError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        let list = "`cudock facts gpu` and `cudock facts size` list what is known".to_owned();
        did_you_mean(&self.near).into_iter().chain([list]).collect()
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
