//! Targets of a probed machine.

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};
use cudock_host::Host;
use cudock_host::checks::Diagnosis;
use cudock_host::host::{FoundBy, NvmlResult};

use super::card::gpu_named;
use super::{HostLibcuda, Target, TargetMachine};

impl Target {
    /// One target per kind of GPU of a machine; one target without a GPU if it has none.
    pub fn of_host(facts: &Facts, host: &Host, diagnosis: &Diagnosis) -> Vec<Self> {
        let machine = machine(host, diagnosis);
        let uuids = machine.uuids.len();
        let mut targets: Vec<Self> = Vec::new();
        for gpu in &diagnosis.gpus {
            let row = facts.gpus().by_product_name(&gpu.name).or_else(|| gpu_named(facts, &gpu.name).ok());
            let mut target = match row {
                Some(row) => Self::of_row(facts, row, diagnosis.driver),
                None => Self::unknown_gpu(facts, diagnosis.driver),
            };
            target.gpu = Some(row.map_or_else(|| gpu.name.clone(), |row| row.id.clone()));
            target.capability = gpu.capability.or(target.capability);
            target.traits.gpu_count = u32::try_from(diagnosis.gpus.len().max(uuids)).ok();
            if !targets.iter().any(|known| known.capability == target.capability && known.gpu == target.gpu) {
                targets.push(target);
            }
        }
        if targets.is_empty() {
            let mut target = Self::unknown_gpu(facts, diagnosis.driver);
            target.traits.gpu_count = Some(0);
            targets.push(target);
        }
        for target in &mut targets {
            target.cuda = diagnosis.cuda.or(target.cuda);
            target.traits.cpu = Some(host.system.cpu_arch);
            target.traits.wsl = host.system.wsl;
            target.traits.driver_assumed = None;
            target.traits.machine = Some(machine.clone());
        }
        targets
    }
}

fn machine(host: &Host, diagnosis: &Diagnosis) -> TargetMachine {
    let first = host
        .libraries
        .iter()
        .find(|library| library.name == "libcuda.so.1" && library.found_by != FoundBy::NotSearched);
    let libcuda = first.map(|library| {
        let (path, kind, version) = (library.path.clone(), library.kind, library.version);
        HostLibcuda { path, kind, version }
    });
    let has_jit = host.libraries.iter().any(|library| library.name.starts_with("libnvidia-ptxjitcompiler"));
    let uuids = match &host.nvml {
        NvmlResult::Report(report) => {
            report.gpus.iter().map(|gpu| gpu.uuid.clone().unwrap_or_default()).collect()
        }
        _ => Vec::new(),
    };
    TargetMachine { libcuda, has_jit, blocked: blocked(diagnosis), uuids }
}

/// The first problem that keeps all programs from using the GPU. Problems of libcuda are judged with the choice of libcuda.
fn blocked(diagnosis: &Diagnosis) -> Option<(Option<u16>, Finding)> {
    let error = |code: &str| match code {
        // No GPU, bound to another driver, not exposed to this container, device nodes missing or forbidden, unsupported.
        "CD0101" | "CD0102" | "CD0106" | "CD0107" | "CD0108" | "CD0111" | "CD0201" | "CD0209" | "CD0210" => {
            Some(Some(100))
        }
        "CD0110" => Some(Some(802)),
        "CD0113" => Some(Some(46)),
        "CD0202" => Some(Some(803)),
        "CD0214" => Some(Some(999)),
        "CD0103" | "CD0104" | "CD0105" => Some(None),
        _ => None,
    };
    diagnosis.checks.iter().filter(|check| check.severity == Some(Severity::Error)).find_map(|check| {
        let finding = check.finding()?;
        // Without this node the driver is found, but memory cannot be shared with it.
        let uvm = finding.code == "CD0107" && finding.message.contains("nvidia-uvm");
        Some((if uvm { Some(999) } else { error(finding.code)? }, finding))
    })
}
