use cudock_facts::finding::Severity;
use cudock_facts::tables::{BranchKind, KernelModule};
use cudock_facts::version::DriverVersion;

use super::{Area, Check, CheckContext, KnownGpu, codes, gpus};
use crate::host::{FoundBy, LibraryKind, NVIDIA, NvmlResult, PciDevice};

pub(super) fn check(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    module(context, checks);
    versions_match(context, checks);
    supported_gpus(context, checks);
    end_of_life(context, checks);
}

/// Checks the kernel module. WSL2 has none, because Windows has the driver.
fn module(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    if context.is_wsl() {
        return;
    }
    let kernel = &context.host.kernel;
    let Some(version) = kernel.version() else {
        // A GPU bound to another driver, or withheld from a container, has been reported already.
        let ours = context.host.pci.iter().filter(|device| device.vendor == NVIDIA && device.is_gpu());
        let free = ours.clone().count() == 0 || ours.clone().any(|device| device.driver.is_none());
        if free && !context.is_in_container() && !matches!(context.host.nvml, NvmlResult::Report(_)) {
            let message = "the NVIDIA kernel module is not loaded";
            let fix = "modprobe nvidia; if that fails read dmesg | grep -i nvrm, and rebuild the module for this kernel \
                       (dkms autoinstall) or install the driver";
            checks.push(
                Check::error(Area::Driver, codes::MODULE_NOT_LOADED, message, fix)
                    .with_evidence("/proc/driver/nvidia/version", "does not exist"),
            );
        }
        return;
    };
    let module_kind = match kernel.open {
        Some(true) => ", open kernel module",
        Some(false) => ", proprietary kernel module",
        None => "",
    };
    let cuda = context.cuda.map_or_else(String::new, |cuda| format!(", CUDA {cuda}"));
    checks.push(Check::ok(Area::Driver, format!("driver {version}{cuda}{module_kind}")));
    let unloaded = !kernel.has("nvidia_uvm") && !context.has_node("/dev/nvidia-uvm");
    // With nvidia-modprobe, the module is loaded on demand; the missing node is reported with the others.
    let on_demand = kernel.makes_nodes && !context.is_in_container();
    if unloaded && !kernel.modules.is_empty() && !context.is_gpu_withheld() && !on_demand {
        let message = "the module nvidia_uvm is not loaded: CUDA fails with error 999";
        let fix = "nvidia-modprobe -u -c=0, or modprobe nvidia_uvm";
        let severity = if context.is_in_container() { Severity::Warning } else { Severity::Error };
        checks.push(Check::new(Area::Driver, severity, codes::UVM_NOT_LOADED, message, fix));
    }
}

/// All driver versions must be the same.
fn versions_match(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let host = context.host;
    let mut versions: Vec<(String, DriverVersion)> = Vec::new();
    let kernel_sources = [
        ("/proc/driver/nvidia/version", host.kernel.proc_version),
        ("/sys/module/nvidia/version", host.kernel.sys_version),
    ];
    versions
        .extend(kernel_sources.into_iter().filter_map(|(path, version)| Some((path.to_owned(), version?))));
    if let NvmlResult::Report(report) = &host.nvml {
        versions.push(("NVML".to_owned(), report.driver));
    }
    for name in ["libcuda.so.1", "libnvidia-ml.so.1"] {
        let used = host
            .libraries
            .iter()
            .find(|library| library.name == name && library.found_by != FoundBy::NotSearched);
        if let Some(library) = used.filter(|library| library.kind == LibraryKind::Driver)
            && let Some(version) = library.version
        {
            versions.push((library.path.clone(), version));
        }
    }
    let mismatch_named =
        matches!(&host.nvml, NvmlResult::Failed(error) if error.to_ascii_lowercase().contains("mismatch"));
    let differ = versions.windows(2).any(|pair| matches!(pair, [(_, a), (_, b)] if a != b));
    if differ || mismatch_named {
        let kernel = host.kernel.version().map_or_else(|| "?".to_owned(), |version| version.to_string());
        let other = versions
            .iter()
            .map(|(_, version)| *version)
            .find(|version| Some(*version) != host.kernel.version());
        let other = other.map_or_else(|| "another version".to_owned(), |version| version.to_string());
        let message =
            format!("kernel module {kernel} does not match libraries {other}: NVML and CUDA fail to start");
        let fix = if context.is_in_container() {
            "remove driver libraries from the image (libcuda, libnvidia-*): they come from the host"
        } else {
            "reboot, or unload and reload the nvidia modules; hold the packages against unattended upgrades"
        };
        let mut check = Check::error(Area::Driver, codes::VERSIONS_DIFFER, message, fix);
        for (path, version) in versions {
            check = check.with_evidence(path, version.to_string());
        }
        checks.push(check);
        return;
    }
    if versions.len() > 1 {
        let sources = versions.len();
        checks.push(Check::ok(Area::Driver, format!("module and libraries match ({sources} sources)")));
    }
    if let NvmlResult::Failed(error) = &host.nvml
        && host.kernel.version().is_some()
        && host
            .libraries
            .iter()
            .any(|library| library.name == "libnvidia-ml.so.1" && library.kind == LibraryKind::Driver)
    {
        let message = format!("NVML failed: {error}");
        let fix = if context.is_in_container() {
            "restart the container; if nvidia-smi works on the host, device rules were lost (see `cudock explain CD0306`)"
        } else {
            "read dmesg | grep -i -e nvrm -e xid, then reset or reboot"
        };
        checks.push(Check::error(Area::Driver, codes::NVML_FAILS, message, fix));
    }
}

/// Whether the branch supports the GPUs, and with this kind of module.
fn supported_gpus(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let Some(driver) = context.driver else { return };
    // A GPU that the module no longer supports is only listed on the PCI bus.
    let kernel = &context.host.kernel;
    let is_left = |device: &&PciDevice| {
        device.vendor == NVIDIA
            && device.is_gpu()
            && !kernel.gpus.is_empty()
            && !context.is_in_container()
            && !kernel.gpus.iter().any(|gpu| gpu.address == device.address)
    };
    let left: Vec<KnownGpu<'_>> = context
        .host
        .pci
        .iter()
        .filter(is_left)
        .map(|device| gpus::by_pci_id(device, context.facts))
        .collect();
    for gpu in context.gpus.iter().chain(&left) {
        let architecture =
            gpu.capability.and_then(|capability| context.facts.drivers().architecture_of(capability));
        if let Some(architecture) = architecture
            && let Some(last) = architecture.last_driver_branch
            && driver.branch() > last
        {
            let message = format!(
                "driver {driver} no longer supports {}: {} support ended with R{last}",
                gpu.name, architecture.name
            );
            let fix = format!("install a driver of branch {last}");
            checks.push(Check::error(Area::Driver, codes::CARD_DROPPED, message, fix));
        }
        let needs_open = gpu.row.is_some_and(|row| row.kernel_module == Some(KernelModule::OpenOnly));
        if needs_open && context.host.kernel.open == Some(false) {
            let message = format!(
                "{} works only with the open kernel module, but the proprietary one is loaded",
                gpu.name
            );
            let fix = "install the -open package of the driver (nvidia-open, nvidia-driver-NNN-open)";
            checks.push(Check::error(Area::Driver, codes::NEEDS_OPEN_MODULE, message, fix));
        }
    }
}

fn end_of_life(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let Some(driver) = context.driver else { return };
    let Some(branch) = context.branch() else {
        let newest = context.facts.drivers().newest().map_or(0, |branch| branch.branch);
        if driver.branch() > newest {
            let message = format!("driver {driver} is newer than the tables, which end at R{newest}");
            let mut check = Check::ok(Area::Driver, message);
            check.severity = Some(Severity::Note);
            checks.push(check);
        }
        return;
    };
    let Some(end) = branch.end_of_life.filter(|end| *end < context.today) else { return };
    let lasting = context.facts.drivers().branch.iter().filter(|row| {
        matches!(row.kind, Some(BranchKind::Lts | BranchKind::Production))
            && row.end_of_life.is_some_and(|end| end > context.today)
    });
    let names: Vec<String> = lasting.map(|row| format!("R{}", row.branch)).collect();
    let message = format!("driver branch R{} has been unsupported since {end}", branch.branch);
    let fix = format!("upgrade to a supported branch: {}", names.join(", "));
    // A container cannot change this.
    let severity = if context.is_in_container() { Severity::Note } else { Severity::Warning };
    checks.push(Check::new(Area::Driver, severity, codes::BRANCH_ENDED, message, fix));
}
