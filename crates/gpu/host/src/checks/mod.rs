//! Diagnoses a host with pure functions over the probed data.

pub mod codes;
mod containers;
mod devices;
mod driver;
mod frameworks;
mod gpus;
mod libraries;

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, FindingEvidence, Severity};
use cudock_facts::tables::{Branch, Gpu};
use cudock_facts::version::{Capability, CudaVersion, Date, DriverVersion};
use schemars::JsonSchema;
use serde::Serialize;

use crate::host::{Host, NvmlResult};

/// The JSON of an optional severity: `ok` for none.
pub mod status {
    use cudock_facts::finding::Severity;
    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::Serializer;

    #[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub fn serialize<S: Serializer>(severity: &Option<Severity>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(severity.map_or("ok", Severity::name))
    }

    pub fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["ok", "note", "warning", "error"]})
    }
}

/// The part of the stack that a check belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    Gpu,
    Driver,
    /// Device nodes and environment variables.
    Devices,
    Libraries,
    Containers,
    Frameworks,
}

/// One statement about the host.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Check {
    pub area: Area,
    /// How serious it is; none if the check passed.
    #[serde(rename = "status", serialize_with = "status::serialize")]
    #[schemars(schema_with = "status::json_schema")]
    pub severity: Option<Severity>,
    /// One sentence.
    pub message: String,
    /// The code of the finding, if there is one.
    pub code: Option<&'static str>,
    pub evidence: Vec<FindingEvidence>,
    pub fix: Option<String>,
}

impl Check {
    fn ok(area: Area, message: impl Into<String>) -> Self {
        Self { area, severity: None, message: message.into(), code: None, evidence: Vec::new(), fix: None }
    }

    fn error(area: Area, code: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(area, Severity::Error, code, message, fix)
    }

    fn warning(area: Area, code: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(area, Severity::Warning, code, message, fix)
    }

    fn new(
        area: Area,
        severity: Severity,
        code: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { severity: Some(severity), code: Some(code), fix: Some(fix.into()), ..Self::ok(area, message) }
    }

    fn with_evidence(mut self, path: impl Into<String>, detail: impl Into<String>) -> Self {
        self.evidence.push(FindingEvidence::new(path, detail));
        self
    }

    /// The finding of a check that did not pass.
    pub fn finding(&self) -> Option<Finding> {
        let fix = self.fix.clone().unwrap_or_default();
        let finding = Finding::new(self.code?, self.severity?, self.message.clone(), fix);
        Some(finding.with_evidence(self.evidence.iter().cloned()))
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GpuReport {
    /// The name from the driver, or by PCI id.
    pub name: String,
    pub capability: Option<Capability>,
    /// Memory in bytes, as reported by the driver.
    pub memory: Option<u64>,
}

/// What a framework will do on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Uses the GPU.
    Works,
    /// Uses the GPU after the driver has compiled its PTX.
    Jit,
    /// Not enough is known.
    Unknown,
    /// Starts, but silently uses the CPU.
    Cpu,
    /// Fails with the given error.
    Fails,
}

impl Verdict {
    /// Whether it will use the GPU.
    pub const fn uses_gpu(self) -> bool {
        matches!(self, Self::Works | Self::Jit)
    }

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
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FrameworkReport {
    /// `torch`
    pub name: String,
    /// `2.11.0+cu130`
    pub version: String,
    /// `CUDA 13.0 (cu130)`
    pub build: String,
    pub verdict: Verdict,
    /// The CUDA error code, if it fails with one.
    pub error: Option<u16>,
    pub reason: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Diagnosis {
    pub gpus: Vec<GpuReport>,
    pub driver: Option<DriverVersion>,
    pub cuda: Option<CudaVersion>,
    pub frameworks: Vec<FrameworkReport>,
    /// The checks, ordered by area.
    pub checks: Vec<Check>,
}

impl Diagnosis {
    /// The highest severity; none if all checks passed.
    pub fn worst(&self) -> Option<Severity> {
        self.checks.iter().filter_map(|check| check.severity).max()
    }
}

/// Data shared by all checks.
struct CheckContext<'a> {
    host: &'a Host,
    facts: &'a Facts,
    today: Date,
    gpus: Vec<KnownGpu<'a>>,
    driver: Option<DriverVersion>,
    cuda: Option<CudaVersion>,
    /// The first problem below the frameworks, which prevents all of them from working.
    blocked_by: Option<&'static str>,
}

/// A GPU and its row in the fact table.
struct KnownGpu<'a> {
    name: String,
    capability: Option<Capability>,
    memory: Option<u64>,
    row: Option<&'a Gpu>,
}

impl<'a> CheckContext<'a> {
    fn branch(&self) -> Option<&'a Branch> {
        self.facts.drivers().branch_of(self.driver?)
    }

    fn is_in_container(&self) -> bool {
        self.host.system.container.is_some()
    }

    fn is_wsl(&self) -> bool {
        self.host.system.wsl
    }

    fn has_gpu(&self) -> bool {
        !self.gpus.is_empty() || self.is_wsl() && self.has_node("/dev/dxg")
    }

    /// Whether this is a container without GPU access.
    fn is_gpu_withheld(&self) -> bool {
        self.is_in_container() && !self.is_wsl() && !self.has_gpu_node()
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

/// Diagnoses a host. The date decides which driver branches have ended.
pub fn examine(host: &Host, facts: &Facts, today: Date) -> Diagnosis {
    let nvml = match &host.nvml {
        NvmlResult::Report(report) => Some(report),
        _ => None,
    };
    let driver = nvml.map(|report| report.driver).or_else(|| host.kernel.version());
    let cuda = nvml
        .and_then(|report| report.cuda)
        .or_else(|| facts.drivers().branch_of(driver?).map(|branch| branch.cuda));
    let gpus = gpus::known(host, facts);
    let mut context = CheckContext { host, facts, today, gpus, driver, cuda, blocked_by: None };

    let mut checks = Vec::new();
    gpus::check(&context, &mut checks);
    if context.has_gpu() || context.driver.is_some() {
        driver::check(&context, &mut checks);
        devices::check(&context, &mut checks);
        libraries::check(&context, &mut checks);
    }
    context.blocked_by =
        checks.iter().find(|check| check.severity == Some(Severity::Error)).and_then(|check| check.code);
    containers::check(&context, &mut checks);
    let frameworks = frameworks::check(&context, &mut checks);
    checks.sort_by_key(|check| check.area);

    let report = |gpu: &KnownGpu<'_>| GpuReport {
        name: gpu.name.clone(),
        capability: gpu.capability,
        memory: gpu.memory,
    };
    Diagnosis { gpus: context.gpus.iter().map(report).collect(), driver, cuda, frameworks, checks }
}
