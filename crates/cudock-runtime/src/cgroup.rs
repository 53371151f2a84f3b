//! The control groups of a container, in version 1, version 2, or both at once.
//!
//! libcontainer makes them and sets their limits. Looking into them, and removing them, is ours: removal has to work for
//! a container whose watcher is dead, and must not wait a tenth of a second where a millisecond is enough.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::error::RuntimeError;
use crate::plan::Limits;

/// The directories of one group in all hierarchies of this machine.
#[derive(Debug, Clone)]
pub(crate) struct Cgroup {
    directories: Vec<PathBuf>,
    unified: Option<PathBuf>,
}

/// How long processes that were killed may take to be gone.
const GONE: Duration = Duration::from_secs(10);

impl Cgroup {
    /// The group at `path`, which counts from the root of each hierarchy.
    pub(crate) fn at(path: &str) -> Self {
        let (first, second) = machine();
        let inside = |mount: &PathBuf| mount.join(path.trim_start_matches('/'));
        let unified = second.as_ref().map(inside);
        let directories = first.iter().map(inside).chain(unified.clone()).collect();
        // In a mixed machine version 2 has no controllers: limits are version 1's business.
        let unified = unified.filter(|_| first.is_empty());
        Self { directories, unified }
    }

    /// The group's directory where this machine has version 2 only.
    pub(crate) fn unified(&self) -> Option<&Path> {
        self.unified.as_deref()
    }

    /// Whether any of it is there.
    pub(crate) fn exists(&self) -> bool {
        self.directories.iter().any(|directory| directory.exists())
    }

    /// Whether a process was ended for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.directories.iter().any(|directory| {
            let text = fs::read_to_string(directory.join("memory.events"))
                .or_else(|_| fs::read_to_string(directory.join("memory.oom_control")))
                .unwrap_or_default();
            text.lines().filter_map(|line| line.strip_prefix("oom_kill ")).any(|count| count.trim() != "0")
        })
    }

    /// A file of the group, in whichever hierarchy it is.
    pub(crate) fn read(&self, file: &str) -> Option<String> {
        self.directories.iter().find_map(|directory| fs::read_to_string(directory.join(file)).ok())
    }

    /// Every process in it.
    pub(crate) fn processes(&self) -> BTreeSet<i32> {
        let listed = self
            .directories
            .iter()
            .filter_map(|directory| fs::read_to_string(directory.join("cgroup.procs")).ok());
        listed
            .flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<i32>>())
            .collect()
    }

    /// Sets limits in version 1, where that is not libcontainer's business.
    pub(crate) fn limit(&self, limits: &Limits) -> Result<(), RuntimeError> {
        let period = 100_000;
        let settings = [
            ("memory.limit_in_bytes", limits.memory.map(|bytes| bytes.to_string())),
            ("pids.max", limits.pids.map(|count| count.to_string())),
            (
                "cpu.cfs_quota_us",
                limits.cpu_millis.map(|millis| (millis * period / 1000).max(1000).to_string()),
            ),
            ("cpuset.cpus", limits.cpuset.clone()),
            ("cpuset.mems", limits.cpuset_mems.clone()),
            ("cpu.shares", limits.cpu_shares.map(|shares| shares.to_string())),
            ("memory.soft_limit_in_bytes", limits.memory_reservation.map(|bytes| bytes.to_string())),
            ("memory.memsw.limit_in_bytes", limits.memory_swap.map(|bytes| bytes.to_string())),
        ];
        for (file, value) in settings {
            let (Some(value), Some(directory)) =
                (value, self.directories.iter().find(|directory| directory.join(file).exists()))
            else {
                continue;
            };
            let path = directory.join(file);
            fs::write(&path, value)
                .map_err(|error| RuntimeError::file("cannot set the limit", path, error))?;
        }
        Ok(())
    }

    /// Forbids a device in version 1.
    pub(crate) fn deny(&self, (major, minor): (u32, u32)) -> Result<(), RuntimeError> {
        let files = self.directories.iter().map(|directory| directory.join("devices.deny"));
        match files.into_iter().find(|file| file.exists()) {
            Some(file) if !crate::rootless::in_user_namespace() => {
                fs::write(&file, format!("c {major}:{minor} rwm"))
                    .map_err(|error| RuntimeError::file("cannot set the rules for devices", file, error))
            }
            _ => Ok(()),
        }
    }

    /// Ends every process in it and removes it.
    pub(crate) fn remove(&self) -> Result<(), RuntimeError> {
        let began = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            let failed = self.directories.iter().find_map(|directory| match remove_directory(directory) {
                Ok(()) => None,
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => Some((directory, error)),
            });
            let Some((directory, error)) = failed else { return Ok(()) };
            let busy = error.raw_os_error() == Some(nix::libc::EBUSY);
            if !busy || began.elapsed() > GONE {
                return Err(RuntimeError::file("cannot remove the control group", directory, error));
            }
            self.kill();
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Sends SIGKILL to every process in it, again until a look finds no new one.
    pub(crate) fn kill(&self) {
        if let Some(unified) = &self.unified
            && fs::write(unified.join("cgroup.kill"), "1").is_ok()
        {
            return;
        }
        let mut killed = BTreeSet::new();
        loop {
            let fresh: Vec<i32> = self.processes().difference(&killed).copied().collect();
            if fresh.is_empty() {
                return;
            }
            for pid in fresh {
                // One that is gone already is what we want.
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL);
                killed.insert(pid);
            }
        }
    }
}

/// Removes a group and those a container made below it.
fn remove_directory(directory: &Path) -> io::Result<()> {
    match fs::remove_dir(directory) {
        Err(error) if error.raw_os_error() == Some(nix::libc::EBUSY) => {
            for entry in fs::read_dir(directory)?.flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    remove_directory(&entry.path())?;
                }
            }
            fs::remove_dir(directory)
        }
        other => other,
    }
}

/// How old a group without processes is at least before it counts as left behind: one that is just made has none yet.
const LEFT_BEHIND: Duration = Duration::from_secs(2);

/// Removes the groups of containers below `parent` that have no process and no container; how many containers they
/// belonged to.
pub(crate) fn prune(parent: &str, is_known: &dyn Fn(&str) -> bool) -> usize {
    let (first, second) = machine();
    let parents = first.iter().chain(second).map(|mount| mount.join(parent.trim_start_matches('/')));
    let mut removed = BTreeSet::new();
    for entry in parents.filter_map(|parent| fs::read_dir(parent).ok()).flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(id) = name.strip_prefix("cudock-").filter(|id| is_id(id) && !is_known(id)) else { continue };
        let age =
            entry.metadata().and_then(|about| about.modified()).ok().and_then(|then| then.elapsed().ok());
        let left = age.is_some_and(|age| age >= LEFT_BEHIND);
        if left
            && Cgroup::at(&format!("{parent}/{name}")).processes().is_empty()
            && remove_directory(&entry.path()).is_ok()
        {
            removed.insert(id.to_owned());
        }
    }
    removed.len()
}

/// Whether a text is what containers are called: sixteen hexadecimal digits.
fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether this machine's control groups can limit swap.
pub(crate) fn counts_swap() -> bool {
    let (first, _) = machine();
    if first.is_empty() {
        return Path::new("/proc/swaps").exists();
    }
    first.iter().any(|hierarchy| hierarchy.join("memory.memsw.limit_in_bytes").exists())
}

/// Where version 1's hierarchies are mounted, in this machine as in containers.
pub(crate) fn first_version() -> &'static [PathBuf] {
    &machine().0
}

/// The hierarchies of this machine, which do not change while we run.
fn machine() -> &'static (Vec<PathBuf>, Option<PathBuf>) {
    static MACHINE: OnceLock<(Vec<PathBuf>, Option<PathBuf>)> = OnceLock::new();
    MACHINE.get_or_init(|| hierarchies(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()))
}

/// The mount points of version 1's hierarchies and of version 2's.
fn hierarchies(mountinfo: &str) -> (Vec<PathBuf>, Option<PathBuf>) {
    let mut first = Vec::new();
    let mut second = None;
    for line in mountinfo.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let Some(point) = before.split(' ').nth(4) else { continue };
        match after.split(' ').next() {
            Some("cgroup") => first.push(PathBuf::from(point)),
            Some("cgroup2") => second = Some(PathBuf::from(point)),
            _ => {}
        }
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchies_of_a_mixed_machine_are_found() {
        let text = "\
25 30 0:23 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
26 25 0:24 / /sys/fs/cgroup/cpu rw,relatime shared:7 - cgroup cgroup rw,cpu
27 25 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
28 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";
        let (first, second) = hierarchies(text);
        assert_eq!(first, [Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup/memory")]);
        assert_eq!(second.as_deref(), Some(Path::new("/sys/fs/cgroup/unified")));
    }

    #[test]
    fn a_machine_with_version_two_only_has_no_others() {
        let (first, second) = hierarchies("30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
        assert!(first.is_empty());
        assert_eq!(second.as_deref(), Some(Path::new("/sys/fs/cgroup")));
    }
}
