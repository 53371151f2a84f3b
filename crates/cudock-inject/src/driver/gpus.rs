//! GPUs and their parts, as the kernel's module tells of them.

use std::collections::BTreeMap;

use super::place::Place;
use super::{Gpu, MigDevice, short_bus};

const GPUS: &str = "/proc/driver/nvidia/gpus";
const CAPABILITIES: &str = "/proc/driver/nvidia/capabilities";
const MIG_MINORS: &str = "/proc/driver/nvidia-caps/mig-minors";

/// GPUs in the order of the bus, which is NVML's.
pub(super) fn read(place: &Place) -> Vec<Gpu> {
    let mut gpus: Vec<Gpu> = place.names(GPUS).iter().filter_map(|bus| gpu(place, bus)).collect();
    gpus.sort_by_key(|gpu| short_bus(&gpu.bus));
    for (index, gpu) in gpus.iter_mut().enumerate() {
        gpu.index = u32::try_from(index).unwrap_or(u32::MAX);
    }
    gpus
}

fn gpu(place: &Place, directory: &str) -> Option<Gpu> {
    let text = place.text(&format!("{GPUS}/{directory}/information"))?;
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let minor = field("Device Minor")?.parse().ok()?;
    Some(Gpu {
        index: 0,
        minor,
        // Before its first use a card shows question marks.
        uuid: field("GPU UUID").filter(|uuid| uuid.starts_with("GPU-") && !uuid.contains('?')),
        bus: directory.to_owned(),
        mig: mig(place, minor),
        dri: dri(place, directory),
    })
}

/// Parts exist where the module shows their access files; `mig-minors` lists all that could.
fn mig(place: &Place, minor: u32) -> Vec<MigDevice> {
    let at = format!("{CAPABILITIES}/gpu{minor}/mig");
    let numbered = |directory: &str, prefix: &str| -> Vec<u32> {
        let mut numbers: Vec<u32> = place
            .names(directory)
            .iter()
            .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    };
    let mut devices = Vec::new();
    for gpu_instance in numbered(&at, "gi") {
        let instance = format!("{at}/gi{gpu_instance}");
        for compute_instance in numbered(&instance, "ci") {
            if place.exists(&format!("{instance}/ci{compute_instance}/access")) {
                let index = u32::try_from(devices.len()).unwrap_or(u32::MAX);
                devices.push(MigDevice { index, gpu_instance, compute_instance, uuid: None });
            }
        }
    }
    devices
}

fn dri(place: &Place, bus: &str) -> Vec<String> {
    let names = place.names(&format!("/sys/bus/pci/devices/{}/drm", short_bus(bus)));
    names.into_iter().filter(|name| name.starts_with("card") || name.starts_with("renderD")).collect()
}

/// Lines such as `gpu0/gi3/ci0/access 31`.
pub(super) fn mig_minors(place: &Place) -> BTreeMap<String, u32> {
    let text = place.text(MIG_MINORS).unwrap_or_default();
    let line = |line: &str| {
        let (name, number) = line.trim().rsplit_once(' ')?;
        Some((name.trim().to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}
