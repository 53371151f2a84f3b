//! GPUs and their MIG devices, as listed by the kernel module.

use std::collections::BTreeMap;

use super::tree::DriverTree;
use super::{DriverGpu, MigDevice, short_bus};

const GPUS: &str = "/proc/driver/nvidia/gpus";
const CAPABILITIES: &str = "/proc/driver/nvidia/capabilities";
const MIG_MINORS: &str = "/proc/driver/nvidia-caps/mig-minors";

/// GPUs in the order of the bus, which is NVML's.
pub(super) fn read(tree: &DriverTree) -> Vec<DriverGpu> {
    let mut gpus: Vec<DriverGpu> = tree.names(GPUS).iter().filter_map(|bus| gpu(tree, bus)).collect();
    gpus.sort_by_key(|gpu| short_bus(&gpu.bus));
    for (index, gpu) in gpus.iter_mut().enumerate() {
        gpu.index = u32::try_from(index).unwrap_or(u32::MAX);
    }
    gpus
}

fn gpu(tree: &DriverTree, directory: &str) -> Option<DriverGpu> {
    let text = tree.text(&format!("{GPUS}/{directory}/information"))?;
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let minor = field("Device Minor")?.parse().ok()?;
    Some(DriverGpu {
        index: 0,
        minor,
        // The UUID contains question marks until the GPU is used for the first time.
        uuid: field("GPU UUID").filter(|uuid| uuid.starts_with("GPU-") && !uuid.contains('?')),
        bus: directory.to_owned(),
        mig: mig(tree, minor),
        dri: dri(tree, directory),
    })
}

/// MIG devices that exist: those whose access files the module shows. `mig-minors` lists all possible ones.
fn mig(tree: &DriverTree, minor: u32) -> Vec<MigDevice> {
    let at = format!("{CAPABILITIES}/gpu{minor}/mig");
    let numbered = |directory: &str, prefix: &str| -> Vec<u32> {
        let mut numbers: Vec<u32> =
            tree.names(directory).iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    };
    let mut devices = Vec::new();
    for gpu_instance in numbered(&at, "gi") {
        let instance = format!("{at}/gi{gpu_instance}");
        for compute_instance in numbered(&instance, "ci") {
            if tree.exists(&format!("{instance}/ci{compute_instance}/access")) {
                let index = u32::try_from(devices.len()).unwrap_or(u32::MAX);
                devices.push(MigDevice { index, gpu_instance, compute_instance, uuid: None });
            }
        }
    }
    devices
}

fn dri(tree: &DriverTree, bus: &str) -> Vec<String> {
    let names = tree.names(&format!("/sys/bus/pci/devices/{}/drm", short_bus(bus)));
    names.into_iter().filter(|name| name.starts_with("card") || name.starts_with("renderD")).collect()
}

/// Numbers of MIG capabilities, from lines such as `gpu0/gi3/ci0/access 31`.
pub(super) fn mig_minors(tree: &DriverTree) -> BTreeMap<String, u32> {
    let text = tree.text(MIG_MINORS).unwrap_or_default();
    let line = |line: &str| {
        let (name, number) = line.trim().rsplit_once(' ')?;
        Some((name.trim().to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}
