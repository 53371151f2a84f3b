//! Warms up cgroup joins, the slowest step of a container start.
//!
//! After an idle period, the first process that joins a cgroup waits for an RCU grace period (5 to 20 ms); those that follow
//! soon do not. So a background process rejoins its own cgroup, which changes nothing, while the container is prepared.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sys;

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

/// The directories of a process's cgroups, from its `/proc/PID/cgroup` and `/proc/self/mountinfo`.
pub(crate) fn cgroup_directories(membership: &str, mountinfo: &str) -> Vec<PathBuf> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ');
        let (root, point) = (fields.nth(3)?, fields.next()?);
        let mut fields = after.split(' ');
        let kind = fields.next()?;
        let controllers = fields.nth(1)?;
        matches!(kind, "cgroup" | "cgroup2").then_some((root, point, kind, controllers))
    });
    let groups: Vec<(&str, &Path)> = membership
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?, Path::new(fields.next()?)))
        })
        .collect();
    let directory = |(root, point, kind, controllers): (&str, &str, &str, &str)| {
        let (_, group) = groups.iter().find(|(names, _)| match kind {
            "cgroup2" => names.is_empty(),
            _ => {
                names.split(',').any(|name| !name.is_empty() && controllers.split(',').any(|one| one == name))
            }
        })?;
        Some(Path::new(point).join(group.strip_prefix(root).ok()?))
    };
    mounts.filter_map(directory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &str = "\
26 25 0:24 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:7 - cgroup cgroup rw,cpu,cpuacct
27 25 0:25 /outer /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
28 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    #[test]
    fn the_directories_of_cgroups_are_found_in_every_hierarchy() {
        let membership = "4:memory:/outer/a\n3:cpu,cpuacct:/b\n1:name=systemd:/c\n0::/d/e\n";
        let expected =
            ["/sys/fs/cgroup/cpu,cpuacct/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/unified/d/e"];
        assert_eq!(cgroup_directories(membership, MIXED), expected.map(PathBuf::from));
    }

    #[test]
    fn a_cgroup_outside_of_the_mounted_part_has_no_directory() {
        let directories = cgroup_directories("4:memory:/elsewhere\n0::/\n", MIXED);
        assert_eq!(directories, [PathBuf::from("/sys/fs/cgroup/unified/")]);
    }

    #[test]
    fn malformed_text_is_ignored() {
        assert!(cgroup_directories("", "").is_empty());
        assert!(cgroup_directories("nonsense", "- cgroup").is_empty());
    }
}
