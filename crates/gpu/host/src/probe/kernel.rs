use cudock_facts::version::DriverVersion;

use crate::host::{AMD, KernelDriver, KernelGpu, NVIDIA, PciDevice};
use crate::{Files, Root};

const DEVICES: &str = "/sys/bus/pci/devices";

/// GPUs from NVIDIA and AMD, and `NVSwitches`.
pub(super) fn pci(root: &Root) -> Vec<PciDevice> {
    let hex = |path: String| u32::from_str_radix(root.line(&path)?.trim_start_matches("0x"), 16).ok();
    let device = |address: String| -> Option<PciDevice> {
        let at = format!("{DEVICES}/{address}");
        Some(PciDevice {
            vendor: u16::try_from(hex(format!("{at}/vendor"))?).ok()?,
            device: u16::try_from(hex(format!("{at}/device"))?).ok()?,
            class: hex(format!("{at}/class"))?,
            driver: root
                .link(&format!("{at}/driver"))
                .and_then(|link| Some(link.rsplit('/').next()?.to_owned())),
            address,
        })
    };
    let devices = root.names(DEVICES).into_iter().filter_map(device);
    devices
        .filter(|device| matches!(device.vendor, NVIDIA | AMD) && (device.is_gpu() || device.is_nvswitch()))
        .collect()
}

pub(super) fn driver(root: &Root) -> KernelDriver {
    let version = root.text("/proc/driver/nvidia/version").unwrap_or_default();
    let module = version.lines().find(|line| line.starts_with("NVRM version:"));
    let modules = root.text("/proc/modules").unwrap_or_default();
    let mut loaded: Vec<String> = modules
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| name.starts_with("nvidia") || matches!(*name, "nouveau" | "vfio_pci" | "amdgpu"))
        .map(str::to_owned)
        .collect();
    // The driver may be built into the kernel, or a container may hide /proc/modules.
    for name in ["nvidia", "nvidia_uvm", "nouveau"] {
        if root.exists(&format!("/sys/module/{name}")) && !loaded.iter().any(|known| known == name) {
            loaded.push(name.to_owned());
        }
    }
    KernelDriver {
        proc_version: module.and_then(version_in),
        sys_version: root.line("/sys/module/nvidia/version").and_then(|line| line.parse().ok()),
        open: module.map(|line| line.contains("Open Kernel Module")),
        modules: loaded,
        gpus: gpus(root),
        makes_nodes: ["/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin"]
            .iter()
            .any(|directory| root.is_program(&format!("{directory}/nvidia-modprobe"))),
        fabric_manager: fabric_manager(root),
    }
}

/// The first driver version in a line: the rest differs between the kinds of module.
fn version_in(line: &str) -> Option<DriverVersion> {
    line.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .find(|version: &DriverVersion| version.is_exact())
}

fn gpus(root: &Root) -> Vec<KernelGpu> {
    let directory = "/proc/driver/nvidia/gpus";
    let gpu = |address: String| {
        let text = root.text(&format!("{directory}/{address}/information")).unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        KernelGpu {
            model: field("Model"),
            minor: field("Device Minor").and_then(|minor| minor.parse().ok()),
            address,
        }
    };
    root.names(directory).into_iter().map(gpu).collect()
}

/// A running fabric manager has a socket; its process may also be visible.
fn fabric_manager(root: &Root) -> Option<bool> {
    if root.exists("/run/nvidia-fabricmanager/socket") || root.exists("/var/run/nvidia-fabricmanager/socket")
    {
        return Some(true);
    }
    let processes: Vec<String> = root
        .names("/proc")
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    if processes.is_empty() {
        return None;
    }
    // The kernel truncates names to 15 bytes.
    Some(processes.iter().any(|id| {
        root.line(&format!("/proc/{id}/comm")).is_some_and(|name| name.starts_with("nv-fabricmanage"))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_for_both_kinds_of_module() {
        let closed =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 24 22:55:48 UTC 2024";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build";
        assert_eq!(version_in(closed).unwrap().to_string(), "535.161.08");
        assert_eq!(version_in(open).unwrap().to_string(), "580.159.04");
    }
}
