//! Files of `/proc` and `/sys` that are not for containers.

use std::path::PathBuf;

/// Hidden from containers: they tell about the whole machine (other tenants' keys, timers, interrupts, power draw, from
/// which secrets were read before) or reach into it. Docker's list: `daemon/pkg/oci/defaults.go` of github.com/moby/moby,
/// read 2026-11-15; the reasons are in its advisories GHSA-jq35-85cj-fj4p and GHSA-6fw5-f8r9-fgfm.
const MASKED: [&str; 12] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
];

/// Visible, and not to be written: settings and switches of the whole machine.
pub const READ_ONLY_PATHS: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// The paths to hide on a machine whose processors have these numbers: those of every machine, and each processor's
/// record of being too hot, from which another tenant's work can be told. Runtimes pass over those that are not there.
pub fn masked_paths(processors: impl IntoIterator<Item = u32>) -> Vec<PathBuf> {
    let hot = |number| PathBuf::from(format!("/sys/devices/system/cpu/cpu{number}/thermal_throttle"));
    MASKED.iter().map(PathBuf::from).chain(processors.into_iter().map(hot)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_absolute_and_stands_once() {
        let mut paths = masked_paths(0..2);
        paths.extend(READ_ONLY_PATHS.iter().map(PathBuf::from));
        assert!(paths.iter().all(|path| path.is_absolute()));
        let count = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), count);
    }

    #[test]
    fn each_processors_heat_is_hidden() {
        assert!(masked_paths([3]).contains(&PathBuf::from("/sys/devices/system/cpu/cpu3/thermal_throttle")));
    }
}
