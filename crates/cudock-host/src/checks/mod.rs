//! What is wrong with a host, by pure functions over what was read.

pub mod codes;
mod containers;
mod devices;
mod driver;
mod frameworks;
mod gpus;
mod libraries;

use cudock_facts::Facts;
use cudock_facts::finding::Evidence;
use cudock_facts::tables::{Branch, Gpu};
use cudock_facts::version::{Capability, CudaVersion, Date, DriverVersion};
use serde::Serialize;

use crate::host::{Host, NvmlAnswer};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing to do.
    Note,
    /// May fail, or fails for some.
    Warning,
    /// Fails.
    Problem,
}

/// Which part of the stack a check looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// Cards and the machine.
    Gpu,
    /// The driver.
    Driver,
    /// Device nodes and variables.
    Devices,
    /// Driver libraries.
    Libraries,
    /// Container engines.
    Containers,
    /// Python's frameworks.
    Frameworks,
}

/// One statement about the host.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// Which part of the stack it looks at.
    pub area: Area,
    /// How it came out.
    pub status: Status,
    /// One sentence.
    pub message: String,
    /// The finding's code, where something is to be said about it.
    pub code: Option<&'static str>,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub fix: Option<String>,
}

impl Check {
    fn ok(area: Area, message: impl Into<String>) -> Self {
        Self {
            area,
            status: Status::Ok,
            message: message.into(),
            code: None,
            evidence: Vec::new(),
            fix: None,
        }
    }

    fn bad(
        area: Area,
        status: Status,
        code: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        let fix = Some(fix.into());
        Self { area, status, message: message.into(), code: Some(code), evidence: Vec::new(), fix }
    }

    fn seen(mut self, path: impl Into<String>, detail: impl Into<String>) -> Self {
        self.evidence.push(Evidence::new(path, detail));
        self
    }
}

/// A card, as far as it is known.
#[derive(Debug, Clone, Serialize)]
pub struct GpuReport {
    /// What the driver calls it, or what its PCI number stands for.
    pub name: String,
    /// Its compute capability.
    pub capability: Option<Capability>,
    /// Memory in bytes, as the driver counts it.
    pub memory: Option<u64>,
}

/// What a framework will do on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Runs on the GPU.
    Works,
    /// Runs after the driver compiles its PTX.
    Jit,
    /// What is known does not decide it.
    Unknown,
    /// Starts, and uses the CPU without a word.
    Cpu,
    /// Fails with the error named.
    Fails,
}

impl Verdict {
    /// As reports and JSON write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Jit => "jit",
            Self::Unknown => "unknown",
            Self::Cpu => "cpu",
            Self::Fails => "fails",
        }
    }
}

/// A framework and what it will do.
#[derive(Debug, Clone, Serialize)]
pub struct FrameworkReport {
    /// torch
    pub name: String,
    /// 2.11.0+cu130
    pub version: String,
    /// "CUDA 13.0 (cu130)"
    pub build: String,
    /// What it will do.
    pub verdict: Verdict,
    /// CUDA's error number, where it fails with one.
    pub error: Option<u16>,
    /// Why.
    pub reason: String,
}

/// All that is to be said about a host.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// The cards.
    pub gpus: Vec<GpuReport>,
    /// The driver in use.
    pub driver: Option<DriverVersion>,
    /// The CUDA version it carries.
    pub cuda: Option<CudaVersion>,
    /// The frameworks.
    pub frameworks: Vec<FrameworkReport>,
    /// The statements, by area.
    pub checks: Vec<Check>,
}

impl Diagnosis {
    /// The worst that was found.
    pub fn worst(&self) -> Status {
        self.checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok)
    }
}

/// What the checks have in common: the host, and what follows from it at once.
struct Situation<'a> {
    host: &'a Host,
    facts: &'a Facts,
    today: Date,
    gpus: Vec<KnownGpu<'a>>,
    driver: Option<DriverVersion>,
    cuda: Option<CudaVersion>,
    /// The first problem below the frameworks: until it is solved, none of them works.
    blocked_by: Option<&'static str>,
}

/// A card and its row in the table.
struct KnownGpu<'a> {
    name: String,
    capability: Option<Capability>,
    memory: Option<u64>,
    row: Option<&'a Gpu>,
}

impl<'a> Situation<'a> {
    fn branch(&self) -> Option<&'a Branch> {
        self.facts.drivers().branch_of(self.driver?)
    }

    fn in_container(&self) -> bool {
        self.host.surroundings.container.is_some()
    }

    fn wsl(&self) -> bool {
        self.host.surroundings.wsl
    }

    fn has_gpu(&self) -> bool {
        !self.gpus.is_empty() || self.wsl() && self.has_node("/dev/dxg")
    }

    /// Whether this is a container that was given no GPU.
    fn gpu_withheld(&self) -> bool {
        self.in_container() && !self.wsl() && !self.has_gpu_node()
    }

    fn has_node(&self, path: &str) -> bool {
        self.host.nodes.iter().any(|node| node.path == path)
    }

    fn has_gpu_node(&self) -> bool {
        let number = |path: &str| path.strip_prefix("/dev/nvidia")?.parse::<u32>().ok();
        self.host.nodes.iter().any(|node| number(&node.path).is_some())
    }

    fn capabilities(&self) -> Vec<Capability> {
        let mut capabilities: Vec<Capability> = self.gpus.iter().filter_map(|gpu| gpu.capability).collect();
        capabilities.sort();
        capabilities.dedup();
        capabilities
    }
}

/// Judges a host on a day: the day decides which driver branches have ended.
pub fn examine(host: &Host, facts: &Facts, today: Date) -> Diagnosis {
    let nvml = match &host.nvml {
        NvmlAnswer::Answered(report) => Some(report),
        _ => None,
    };
    let driver = nvml.map(|report| report.driver).or_else(|| host.kernel.version());
    let cuda = nvml
        .and_then(|report| report.cuda)
        .or_else(|| facts.drivers().branch_of(driver?).map(|branch| branch.cuda));
    let gpus = gpus::known(host, facts);
    let mut situation = Situation { host, facts, today, gpus, driver, cuda, blocked_by: None };

    let mut checks = Vec::new();
    gpus::check(&situation, &mut checks);
    if situation.has_gpu() || situation.driver.is_some() {
        driver::check(&situation, &mut checks);
        devices::check(&situation, &mut checks);
        libraries::check(&situation, &mut checks);
    }
    situation.blocked_by =
        checks.iter().find(|check| check.status == Status::Problem).and_then(|check| check.code);
    containers::check(&situation, &mut checks);
    let frameworks = frameworks::check(&situation, &mut checks);
    checks.sort_by_key(|check| check.area);

    let report = |gpu: &KnownGpu<'_>| GpuReport {
        name: gpu.name.clone(),
        capability: gpu.capability,
        memory: gpu.memory,
    };
    Diagnosis { gpus: situation.gpus.iter().map(report).collect(), driver, cuda, frameworks, checks }
}
