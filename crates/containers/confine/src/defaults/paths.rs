//! Files of `/proc` and `/sys` that containers must not see or write.

use std::path::PathBuf;

/// Masked in containers: they expose the whole machine (other tenants' keys, timers, interrupts and power draw, from
/// which secrets have been recovered) or control it. Docker's list: `daemon/pkg/oci/defaults.go` of github.com/moby/moby,
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

/// Visible but read-only: settings of the whole machine.
pub const READ_ONLY_PATHS: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// The paths to mask on a machine with these processors, including each processor's thermal throttling counters, which
/// reveal what other tenants run. Runtimes skip paths that do not exist.
pub fn masked_paths(processors: impl IntoIterator<Item = u32>) -> Vec<PathBuf> {
    let throttle = |number| PathBuf::from(format!("/sys/devices/system/cpu/cpu{number}/thermal_throttle"));
    MASKED.iter().map(PathBuf::from).chain(processors.into_iter().map(throttle)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_absolute_and_listed_once() {
        let mut paths = masked_paths(0..2);
        paths.extend(READ_ONLY_PATHS.iter().map(PathBuf::from));
        assert!(paths.iter().all(|path| path.is_absolute()));
        let count = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), count);
    }

    #[test]
    fn each_processors_throttling_counters_are_masked() {
        assert!(masked_paths([3]).contains(&PathBuf::from("/sys/devices/system/cpu/cpu3/thermal_throttle")));
    }
}
