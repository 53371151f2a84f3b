//! A head start for what takes longest in a start: joining a control group.
//!
//! The first process that joins one after a quiet time waits until every processor has passed a certain point (an RCU
//! grace period, 5 to 20 ms); whoever comes soon after it does not. So a process of ours joins the group it is in
//! already, which changes nothing, while the container is still being made ready.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sys;

/// Begins the wait in the background. Nothing depends on it: where it cannot be begun, the container's own process
/// waits instead.
pub fn begin() {
    sys::orphaned(|| {
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let myself = std::process::id().to_string();
        // A directory that merely looks like ours would move us into another group.
        let ours =
            own_directories(&membership, &mounts).into_iter().map(|directory| directory.join("cgroup.procs"));
        let listed =
            |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.lines().any(|pid| pid == myself));
        if let Some(file) = ours.into_iter().find(listed) {
            let _ = fs::write(file, "0");
        }
    });
}

/// The directories of the groups that a process is in, from its `/proc/self/cgroup` and `/proc/self/mountinfo`.
pub(crate) fn own_directories(membership: &str, mountinfo: &str) -> Vec<PathBuf> {
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
    fn the_directories_of_ones_own_groups_are_found_in_every_hierarchy() {
        let membership = "4:memory:/outer/a\n3:cpu,cpuacct:/b\n1:name=systemd:/c\n0::/d/e\n";
        let expected =
            ["/sys/fs/cgroup/cpu,cpuacct/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/unified/d/e"];
        assert_eq!(own_directories(membership, MIXED), expected.map(PathBuf::from));
    }

    #[test]
    fn a_group_outside_of_what_is_mounted_has_no_directory() {
        let directories = own_directories("4:memory:/elsewhere\n0::/\n", MIXED);
        assert_eq!(directories, [PathBuf::from("/sys/fs/cgroup/unified/")]);
    }

    #[test]
    fn nothing_is_made_of_text_that_is_neither() {
        assert!(own_directories("", "").is_empty());
        assert!(own_directories("nonsense", "- cgroup").is_empty());
    }
}
