use cudock_facts::tables::{BranchKind, KernelModule};
use cudock_facts::version::DriverVersion;

use super::{Area, Check, KnownGpu, Situation, Status, codes, gpus};
use crate::host::{FoundBy, LibraryKind, NVIDIA, NvmlAnswer, PciDevice};

pub(super) fn check(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    module(situation, checks);
    agreement(situation, checks);
    cards(situation, checks);
    life(situation, checks);
}

/// Under WSL2 there is no kernel module: Windows has the driver.
fn module(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    if situation.wsl() {
        return;
    }
    let kernel = &situation.host.kernel;
    let Some(version) = kernel.version() else {
        // A card that another driver holds, or that a container was not given, has been told already.
        let ours = situation.host.pci.iter().filter(|device| device.vendor == NVIDIA && device.is_gpu());
        let free = ours.clone().count() == 0 || ours.clone().any(|device| device.driver.is_none());
        if free && !situation.in_container() && !matches!(situation.host.nvml, NvmlAnswer::Answered(_)) {
            let message = "the NVIDIA kernel module is not loaded";
            let fix = "modprobe nvidia; if that fails read dmesg | grep -i nvrm, and rebuild the module for this kernel \
                       (dkms autoinstall) or install the driver";
            checks.push(
                Check::bad(Area::Driver, Status::Problem, codes::MODULE_NOT_LOADED, message, fix)
                    .seen("/proc/driver/nvidia/version", "does not exist"),
            );
        }
        return;
    };
    let flavour = match kernel.open {
        Some(true) => ", open kernel module",
        Some(false) => ", proprietary kernel module",
        None => "",
    };
    let cuda = situation.cuda.map_or_else(String::new, |cuda| format!(", CUDA {cuda}"));
    checks.push(Check::ok(Area::Driver, format!("driver {version}{cuda}{flavour}")));
    let unloaded = !kernel.has("nvidia_uvm") && !situation.has_node("/dev/nvidia-uvm");
    // With nvidia-modprobe, the first program that needs the module loads it; the missing node is told with the others.
    let on_demand = kernel.makes_nodes && !situation.in_container();
    if unloaded && !kernel.modules.is_empty() && !situation.gpu_withheld() && !on_demand {
        let message = "the module nvidia_uvm is not loaded: CUDA fails with error 999";
        let fix = "nvidia-modprobe -u -c=0, or modprobe nvidia_uvm";
        let status = if situation.in_container() { Status::Warning } else { Status::Problem };
        checks.push(Check::bad(Area::Driver, status, codes::UVM_NOT_LOADED, message, fix));
    }
}

/// All that carries a driver version must carry the same one.
fn agreement(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    let host = situation.host;
    let mut said: Vec<(String, DriverVersion)> = Vec::new();
    let witnesses = [
        ("/proc/driver/nvidia/version", host.kernel.proc_version),
        ("/sys/module/nvidia/version", host.kernel.sys_version),
    ];
    said.extend(witnesses.into_iter().filter_map(|(path, version)| Some((path.to_owned(), version?))));
    if let NvmlAnswer::Answered(report) = &host.nvml {
        said.push(("NVML".to_owned(), report.driver));
    }
    for name in ["libcuda.so.1", "libnvidia-ml.so.1"] {
        let used = host
            .libraries
            .iter()
            .find(|library| library.name == name && library.found_by != FoundBy::NotSearched);
        if let Some(library) = used.filter(|library| library.kind == LibraryKind::Driver)
            && let Some(version) = library.version
        {
            said.push((library.path.clone(), version));
        }
    }
    let mismatch_named =
        matches!(&host.nvml, NvmlAnswer::Failed(error) if error.to_ascii_lowercase().contains("mismatch"));
    let differ = said.windows(2).any(|pair| matches!(pair, [(_, a), (_, b)] if a != b));
    if differ || mismatch_named {
        let kernel = host.kernel.version().map_or_else(|| "?".to_owned(), |version| version.to_string());
        let other =
            said.iter().map(|(_, version)| *version).find(|version| Some(*version) != host.kernel.version());
        let other = other.map_or_else(|| "another version".to_owned(), |version| version.to_string());
        let message = format!(
            "the kernel module is {kernel} and the libraries are {other}: NVML and CUDA refuse to start"
        );
        let fix = if situation.in_container() {
            "take driver libraries out of the image (libcuda, libnvidia-*): they come from the host"
        } else {
            "reboot, or unload and reload the nvidia modules; hold the packages against unattended upgrades"
        };
        let mut check = Check::bad(Area::Driver, Status::Problem, codes::VERSIONS_DIFFER, message, fix);
        for (path, version) in said {
            check = check.seen(path, version.to_string());
        }
        checks.push(check);
        return;
    }
    if said.len() > 1 {
        let places = said.len();
        checks.push(Check::ok(Area::Driver, format!("module and libraries agree ({places} places)")));
    }
    if let NvmlAnswer::Failed(error) = &host.nvml
        && host.kernel.version().is_some()
        && host
            .libraries
            .iter()
            .any(|library| library.name == "libnvidia-ml.so.1" && library.kind == LibraryKind::Driver)
    {
        let message = format!("NVML answers with an error: {error}");
        let fix = if situation.in_container() {
            "restart the container; if nvidia-smi works on the host, device rules were lost (see `cudock explain CD0306`)"
        } else {
            "read dmesg | grep -i -e nvrm -e xid, then reset or reboot"
        };
        checks.push(Check::bad(Area::Driver, Status::Problem, codes::NVML_FAILS, message, fix));
    }
}

/// Whether the branch drives the cards, and with the right flavour of module.
fn cards(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    let Some(driver) = situation.driver else { return };
    // Beside cards that the module has taken, one that it no longer drives is on the bus alone.
    let kernel = &situation.host.kernel;
    let is_left = |device: &&PciDevice| {
        device.vendor == NVIDIA
            && device.is_gpu()
            && !kernel.gpus.is_empty()
            && !situation.in_container()
            && !kernel.gpus.iter().any(|gpu| gpu.address == device.address)
    };
    let left: Vec<KnownGpu<'_>> = situation
        .host
        .pci
        .iter()
        .filter(is_left)
        .map(|device| gpus::by_pci_id(device, situation.facts))
        .collect();
    for gpu in situation.gpus.iter().chain(&left) {
        let architecture =
            gpu.capability.and_then(|capability| situation.facts.drivers().architecture_of(capability));
        if let Some(architecture) = architecture
            && let Some(last) = architecture.last_driver_branch
            && driver.branch() > last
        {
            let message = format!(
                "driver {driver} no longer drives {}: {} ended with R{last}",
                gpu.name, architecture.name
            );
            let fix = format!("install a driver of branch {last}");
            checks.push(Check::bad(Area::Driver, Status::Problem, codes::CARD_DROPPED, message, fix));
        }
        let needs_open = gpu.row.is_some_and(|row| row.kernel_module == Some(KernelModule::OpenOnly));
        if needs_open && situation.host.kernel.open == Some(false) {
            let message = format!(
                "{} works only with the open kernel module, and the proprietary one is loaded",
                gpu.name
            );
            let fix = "install the -open package of the driver (nvidia-open, nvidia-driver-NNN-open)";
            checks.push(Check::bad(Area::Driver, Status::Problem, codes::NEEDS_OPEN_MODULE, message, fix));
        }
    }
}

fn life(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    let Some(driver) = situation.driver else { return };
    let Some(branch) = situation.branch() else {
        let newest = situation.facts.drivers().newest().map_or(0, |branch| branch.branch);
        if driver.branch() > newest {
            let message = format!("driver {driver} is newer than the tables, which end at R{newest}");
            let mut check = Check::ok(Area::Driver, message);
            check.status = Status::Note;
            checks.push(check);
        }
        return;
    };
    let Some(end) = branch.end_of_life.filter(|end| *end < situation.today) else { return };
    let lasting = situation.facts.drivers().branch.iter().filter(|row| {
        matches!(row.kind, Some(BranchKind::Lts | BranchKind::Production))
            && row.end_of_life.is_some_and(|end| end > situation.today)
    });
    let names: Vec<String> = lasting.map(|row| format!("R{}", row.branch)).collect();
    let message = format!("driver branch R{} gets no fixes since {end}", branch.branch);
    let fix = format!("move to a branch that is kept: {}", names.join(", "));
    // In a container it is the host's matter.
    let status = if situation.in_container() { Status::Note } else { Status::Warning };
    checks.push(Check::bad(Area::Driver, status, codes::BRANCH_ENDED, message, fix));
}
