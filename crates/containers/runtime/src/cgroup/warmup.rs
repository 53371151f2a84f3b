//! Warms up cgroup joins, the slowest step of a container start.
//!
//! After an idle period, the first process that joins a cgroup waits for an RCU grace period (5 to 20 ms); those that follow
//! soon do not. So a background process rejoins its own cgroup, which changes nothing, while the container is prepared.

use std::fs;
use std::path::PathBuf;

use crate::cgroup::mounts::cgroup_directories;
use crate::namespace::sys;

/// Starts the wait in the background. If that fails, the container's own process waits instead.
pub fn start() {
    sys::orphaned(|| {
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let myself = std::process::id().to_string();
        // Joining a directory that is not ours would move this process into another cgroup.
        let ours = cgroup_directories(&membership, &mounts)
            .into_iter()
            .map(|directory| directory.join("cgroup.procs"));
        let listed =
            |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.lines().any(|pid| pid == myself));
        if let Some(file) = ours.into_iter().find(listed) {
            let _ = fs::write(file, "0");
        }
    });
}
