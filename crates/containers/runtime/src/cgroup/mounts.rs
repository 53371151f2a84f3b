//! Where cgroup hierarchies are mounted.
//!
//! A machine may have further mounts of a hierarchy or of a part of it, such as those of containers that were made in it. One
//! of each hierarchy is used.

use std::path::{Path, PathBuf};

/// Where hierarchies are mounted by convention.
pub(crate) const USUAL: &str = "/sys/fs/cgroup";

/// A mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) point: PathBuf,
    /// The cgroup that is mounted there.
    root: String,
    /// Its controllers in version 1; `None` for version 2.
    controllers: Option<Vec<String>>,
    /// The number of the file system, which all mounts of a hierarchy share.
    device: String,
}

impl Hierarchy {
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(2);
        let (device, root, point) = (fields.next()?, fields.next()?, fields.next()?);
        let mut fields = after.split(' ');
        let kind = fields.next()?;
        let options = fields.nth(1)?;
        let controllers = match kind {
            "cgroup" => Some(options.split(',').map(str::to_owned).collect()),
            "cgroup2" => None,
            _ => return None,
        };
        Some(Self { point: point.into(), root: root.to_owned(), controllers, device: device.to_owned() })
    }

    pub(crate) fn is_unified(&self) -> bool {
        self.controllers.is_none()
    }

    pub(crate) fn controls(&self, controller: &str) -> bool {
        self.controllers.iter().flatten().any(|known| known == controller)
    }

    /// Whether this mount is less likely to be the hierarchy's main one than another.
    fn rank(&self) -> (bool, bool) {
        (self.root != "/", !self.point.starts_with(USUAL))
    }

    /// The directory of a cgroup, if it is in the mounted part.
    fn directory(&self, group: &Path) -> Option<PathBuf> {
        Some(self.point.join(group.strip_prefix(&self.root).ok()?))
    }
}

/// The mounted hierarchies, one mount of each, in the order of a `/proc/self/mountinfo`.
pub(crate) fn hierarchies(mountinfo: &str) -> Vec<Hierarchy> {
    best(mountinfo.lines().filter_map(Hierarchy::parse))
}

fn best(mounts: impl Iterator<Item = Hierarchy>) -> Vec<Hierarchy> {
    let mut best: Vec<Hierarchy> = Vec::new();
    for mount in mounts {
        match best.iter_mut().find(|known| known.device == mount.device) {
            Some(known) if mount.rank() < known.rank() => *known = mount,
            Some(_) => {}
            None => best.push(mount),
        }
    }
    best
}

/// The directories of a process's cgroups, one in each hierarchy, from its `/proc/PID/cgroup` and `/proc/self/mountinfo`.
pub(crate) fn cgroup_directories(membership: &str, mountinfo: &str) -> Vec<PathBuf> {
    let groups: Vec<(&str, &Path)> = membership
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?, Path::new(fields.next()?)))
        })
        .collect();
    let directory = |mount: &Hierarchy| {
        let (_, group) = groups.iter().find(|(names, _)| {
            if mount.is_unified() {
                names.is_empty()
            } else {
                names.split(',').any(|name| mount.controls(name))
            }
        })?;
        mount.directory(group)
    };
    let mounts = mountinfo.lines().filter_map(Hierarchy::parse);
    best(mounts.filter(|mount| directory(mount).is_some())).iter().filter_map(directory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &str = "\
26 25 0:24 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:7 - cgroup cgroup rw,cpu,cpuacct
27 25 0:25 /outer /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
28 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    fn points(mountinfo: &str) -> Vec<String> {
        hierarchies(mountinfo).into_iter().map(|one| one.point.display().to_string()).collect()
    }

    #[test]
    fn of_several_mounts_of_a_hierarchy_the_main_one_is_used_wherever_it_is_listed() {
        let main = "26 25 0:24 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        for other in [
            "31 25 0:24 /docker/0123 /var/lib/inner/sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
            "32 25 0:24 / /srv/root/sys/fs/cgroup/memory ro - cgroup cgroup rw,memory",
            "33 25 0:24 /docker/0123 /sys/fs/cgroup/other rw - cgroup cgroup rw,memory",
        ] {
            for both in [[main, other], [other, main]] {
                assert_eq!(points(&both.join("\n")), ["/sys/fs/cgroup/memory"], "{both:?}");
            }
        }
        let only = "31 25 0:24 /docker/0123 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        assert_eq!(points(only), ["/sys/fs/cgroup/memory"]);
        let unified = "\
28 25 0:26 /user.slice /srv/root/sys/fs/cgroup rw - cgroup2 cgroup2 rw
30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw
";
        assert_eq!(points(unified), ["/sys/fs/cgroup"]);
    }

    #[test]
    fn the_directories_of_cgroups_are_found_in_every_hierarchy() {
        let membership = "4:memory:/outer/a\n3:cpu,cpuacct:/b\n1:name=systemd:/c\n0::/d/e\n";
        let expected =
            ["/sys/fs/cgroup/cpu,cpuacct/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/unified/d/e"];
        assert_eq!(cgroup_directories(membership, MIXED), expected.map(PathBuf::from));
        let further = "29 25 0:25 / /srv/memory ro - cgroup cgroup rw,memory\n".to_owned() + MIXED;
        let elsewhere = cgroup_directories("4:memory:/elsewhere\n", &further);
        assert_eq!(elsewhere, [PathBuf::from("/srv/memory/elsewhere")], "a group outside of the usual mount");
        assert_eq!(cgroup_directories("4:memory:/outer/a\n", &further).len(), 1, "one directory of each");
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
        assert!(hierarchies("1 2 - cgroup").is_empty());
    }
}
