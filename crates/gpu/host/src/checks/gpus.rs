use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::tables::GpuClass;

use super::{Area, Check, CheckContext, KnownGpu, codes};
use crate::host::{AMD, Host, NVIDIA, NvmlResult, PciDevice};

/// The GPUs from the best source: NVML, then the kernel module, then the PCI bus.
pub(super) fn known<'a>(host: &Host, facts: &'a Facts) -> Vec<KnownGpu<'a>> {
    if let NvmlResult::Report(report) = &host.nvml
        && !report.gpus.is_empty()
    {
        let gpu = |gpu: &crate::host::NvmlGpu| KnownGpu {
            name: gpu.name.clone(),
            capability: gpu.capability,
            memory: gpu.memory_total,
            row: facts.gpus().by_product_name(&gpu.name),
        };
        return report.gpus.iter().map(gpu).collect();
    }
    let models =
        host.kernel.gpus.iter().filter_map(|gpu| Some((gpu, gpu.model.as_deref()?))).map(|(gpu, model)| {
            let on_bus = || host.pci.iter().find(|device| device.address == gpu.address);
            // If the tables do not have the model, or a container hides it, use the PCI id.
            let row = facts
                .gpus()
                .by_product_name(model)
                .or_else(|| facts.gpus().by_pci_id(on_bus()?.device).first().copied());
            let capability = row.and_then(|row| row.capability);
            KnownGpu { name: model.to_owned(), capability, memory: None, row }
        });
    let models: Vec<KnownGpu<'_>> = models.collect();
    if !models.is_empty() {
        return models;
    }
    let on_bus = host.pci.iter().filter(|device| device.vendor == NVIDIA && device.is_gpu());
    on_bus.map(|device| by_pci_id(device, facts)).collect()
}

pub(super) fn by_pci_id<'a>(device: &PciDevice, facts: &'a Facts) -> KnownGpu<'a> {
    let rows = facts.gpus().by_pci_id(device.device);
    let row = rows.first().copied();
    let names: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let name =
        if names.is_empty() { format!("NVIDIA device {:04x}", device.device) } else { names.join(" or ") };
    KnownGpu { name, capability: row.and_then(|row| row.capability), memory: None, row }
}

pub(super) fn check(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    if context.is_wsl() {
        wsl(context, checks);
    } else if context.gpus.is_empty() {
        checks.push(no_gpu(context));
    }
    for gpu in &context.gpus {
        let capability =
            gpu.capability.map_or_else(String::new, |capability| format!(", capability {capability}"));
        #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
        let memory = gpu
            .memory
            .map_or_else(String::new, |bytes| format!(", {:.1} GiB", bytes as f64 / 1_073_741_824.0));
        checks.push(Check::ok(Area::Gpu, format!("{}{capability}{memory}", gpu.name)));
    }
    bound_to_another_driver(context, checks);
    if context.is_gpu_withheld() && !context.gpus.is_empty() {
        let message = "this container has no access to the GPU: /dev has no nvidia device nodes";
        let fix = "start it with the GPU: docker run --gpus all …, podman run --device nvidia.com/gpu=all …, or a \
                   Kubernetes limit nvidia.com/gpu: 1";
        checks.push(Check::error(Area::Gpu, codes::CONTAINER_WITHOUT_GPU, message, fix));
    }
    system(context, checks);
}

fn no_gpu(context: &CheckContext<'_>) -> Check {
    let amd = context.host.pci.iter().find(|device| device.vendor == AMD && device.is_gpu());
    if let Some(device) = amd {
        let message = "the only GPU is from AMD: CUDA programs cannot use it";
        let fix = "use ROCm builds of the frameworks, or a machine with an NVIDIA GPU";
        let detail = format!("vendor 1002, device {:04x}", device.device);
        return Check::error(Area::Gpu, codes::ONLY_AMD, message, fix).with_evidence(&device.address, detail);
    }
    if let Some(marker) = context.host.system.container.as_deref() {
        let message = "no NVIDIA GPU is visible in this container";
        let fix =
            "start it with the GPU (docker run --gpus all …), after `cudock doctor` on the host finds one";
        return Check::error(Area::Gpu, codes::CONTAINER_WITHOUT_GPU, message, fix)
            .with_evidence(marker, "this is a container")
            .with_evidence("/dev", "no nvidia device nodes");
    }
    let message = "no NVIDIA GPU on this machine";
    let fix = "use a machine with one; on a virtual machine check that its size has a GPU (`cudock facts size NAME`)";
    Check::error(Area::Gpu, codes::NO_GPU, message, fix)
        .with_evidence("/sys/bus/pci/devices", "no NVIDIA display controller")
}

fn wsl(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let is_from_windows = |library: &&crate::host::DriverLibrary| library.path.starts_with("/usr/lib/wsl/");
    let of_windows =
        context.host.libraries.iter().filter(|library| library.name == "libcuda.so.1").find(is_from_windows);
    let update = "install a current NVIDIA driver on Windows, run `wsl --update`, and restart WSL";
    match (context.has_node("/dev/dxg"), of_windows) {
        (true, Some(library)) => {
            checks.push(
                Check::ok(Area::Gpu, "WSL2 with the GPU of Windows")
                    .with_evidence(&library.path, "from the Windows driver"),
            );
        }
        (false, _) => {
            let message = "WSL2 without a GPU: /dev/dxg is missing";
            checks.push(Check::error(Area::Gpu, codes::WSL_WITHOUT_DRIVER, message, update));
        }
        (true, None) => {
            let message = "WSL2 has a GPU, but Windows provides no NVIDIA driver";
            checks.push(
                Check::error(Area::Gpu, codes::WSL_WITHOUT_DRIVER, message, update)
                    .with_evidence("/usr/lib/wsl/lib", "no libcuda.so.1"),
            );
        }
    }
    let mut linux = context.host.libraries.iter().filter(|library| library.name == "libcuda.so.1");
    if let Some(library) = linux.find(|library| library.version.is_some() && !is_from_windows(library)) {
        let message = "a Linux driver is installed in WSL2, where only the Windows driver works";
        let fix = "remove it: apt-get purge 'nvidia-driver-*' 'libnvidia-compute-*' cuda-drivers; keep cuda-toolkit-X-Y only";
        let version = library.version.map_or_else(String::new, |version| format!("driver {version}"));
        checks.push(
            Check::error(Area::Gpu, codes::LINUX_DRIVER_IN_WSL, message, fix)
                .with_evidence(&library.path, version),
        );
    }
}

fn bound_to_another_driver(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let ours = context.host.pci.iter().filter(|device| device.vendor == NVIDIA && device.is_gpu());
    for device in ours {
        let Some(bound_to) = device.driver.as_deref().filter(|driver| *driver != "nvidia") else { continue };
        let fix = match bound_to {
            "nouveau" => {
                "blacklist it (echo 'blacklist nouveau' > /etc/modprobe.d/no-nouveau.conf), rebuild the initramfs, reboot"
            }
            "vfio-pci" => "the GPU is reserved for a virtual machine: unbind it, or use it in that machine",
            _ => "unbind the device from that driver and load nvidia",
        };
        let message =
            format!("the GPU at {} is bound to {bound_to}, not to the NVIDIA driver", device.address);
        checks.push(
            Check::error(Area::Gpu, codes::HELD_BY_ANOTHER_DRIVER, message, fix)
                .with_evidence(format!("/sys/bus/pci/devices/{}/driver", device.address), bound_to),
        );
    }
}

/// Checks MIG, persistence, compute mode and `NVSwitches`.
fn system(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let host = context.host;
    let switches = host.pci.iter().filter(|device| device.is_nvswitch()).count();
    if switches > 0 && !context.is_in_container() {
        if host.kernel.fabric_manager == Some(false) {
            let message =
                format!("{switches} NVSwitches without a running fabric manager: CUDA fails with error 802");
            let fix = "install nvidia-fabricmanager of exactly the driver's version, then systemctl enable --now nvidia-fabricmanager";
            checks.push(Check::error(Area::Gpu, codes::NO_FABRIC_MANAGER, message, fix));
        } else {
            checks.push(Check::ok(Area::Gpu, format!("{switches} NVSwitches, fabric manager running")));
        }
    }
    let NvmlResult::Report(report) = &host.nvml else { return };
    for (index, gpu) in report.gpus.iter().enumerate() {
        if gpu.mig == Some(true) && gpu.mig_devices == Some(0) {
            let message =
                format!("GPU {index} is in MIG mode without an instance: CUDA sees no device (error 100)");
            let fix = "create one (nvidia-smi mig -cgi 19 -C), or switch MIG off (nvidia-smi -mig 0)";
            checks.push(Check::error(Area::Gpu, codes::MIG_WITHOUT_INSTANCE, message, fix));
        }
        match gpu.compute_mode.as_deref() {
            Some("Prohibited") => {
                let message =
                    format!("GPU {index} prohibits compute: every CUDA program fails with error 46");
                checks.push(Check::error(Area::Gpu, codes::COMPUTE_MODE, message, "nvidia-smi -c 0"));
            }
            Some("ExclusiveProcess") => {
                let message =
                    format!("GPU {index} allows one process at a time; a second one fails with error 46");
                let fix = "nvidia-smi -c 0, unless MPS or exclusive mode is intended";
                checks.push(Check::new(Area::Gpu, Severity::Note, codes::COMPUTE_MODE, message, fix));
            }
            _ => {}
        }
    }
    let without = report.gpus.iter().filter(|gpu| gpu.persistence == Some(false)).count();
    if without > 0 && !context.is_in_container() && !context.is_wsl() {
        let message = format!(
            "persistence mode is off on {without} of {} GPUs: each first use waits for driver initialization",
            report.gpus.len()
        );
        let fix = "systemctl enable --now nvidia-persistenced, or nvidia-smi -pm 1";
        // A desktop session keeps its GPU initialized.
        let server =
            context.gpus.iter().any(|gpu| gpu.row.is_none_or(|row| row.class == GpuClass::Datacenter));
        let severity = if server { Severity::Warning } else { Severity::Note };
        checks.push(Check::new(Area::Gpu, severity, codes::NO_PERSISTENCE, message, fix));
    }
}
