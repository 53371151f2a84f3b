//! The cgroups of a container, in version 1, version 2, or both.
//!
//! libcontainer creates them and sets their limits. Reading and removing them is implemented here: removal must work for a
//! container whose watcher is dead, and libcontainer waits 100 ms where 1 ms is enough.

pub(crate) mod mounts;
pub mod warmup;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::cgroup::mounts::{Hierarchy, hierarchies};
use crate::container::config::Limits;
use crate::error::RuntimeError;

/// The directories of one cgroup in all hierarchies.
#[derive(Debug, Clone)]
pub(crate) struct Cgroup {
    directories: Vec<PathBuf>,
    unified: Option<PathBuf>,
}

/// How long killed processes may take to disappear.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The path of a container's cgroup, relative to the root of each hierarchy.
pub(crate) fn container_path(id: &str) -> String {
    format!("{}/cudock-{id}", crate::namespace::rootless::cgroup_parent())
}

impl Cgroup {
    pub(crate) fn of_container(id: &str) -> Self {
        Self::at(&container_path(id))
    }

    /// The cgroup at `path`, relative to the root of each hierarchy.
    pub(crate) fn at(path: &str) -> Self {
        let (first, second) = machine();
        let inside = |hierarchy: &Hierarchy| hierarchy.point.join(path.trim_start_matches('/'));
        let unified = second.as_ref().map(inside);
        let directories = first.iter().map(inside).chain(unified.clone()).collect();
        // In hybrid mode version 2 has no controllers.
        let unified = unified.filter(|_| first.is_empty());
        Self { directories, unified }
    }

    /// The directory, if this machine has version 2 only.
    pub(crate) fn unified(&self) -> Option<&Path> {
        self.unified.as_deref()
    }

    pub(crate) fn exists(&self) -> bool {
        self.directories.iter().any(|directory| directory.exists())
    }

    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.directories.iter().any(|directory| {
            let text = fs::read_to_string(directory.join("memory.events"))
                .or_else(|_| fs::read_to_string(directory.join("memory.oom_control")))
                .unwrap_or_default();
            text.lines().filter_map(|line| line.strip_prefix("oom_kill ")).any(|count| count.trim() != "0")
        })
    }

    /// A file of the cgroup, from whichever hierarchy has it.
    pub(crate) fn read(&self, file: &str) -> Option<String> {
        self.directories.iter().find_map(|directory| fs::read_to_string(directory.join(file)).ok())
    }

    pub(crate) fn processes(&self) -> BTreeSet<i32> {
        let listed = self
            .directories
            .iter()
            .filter_map(|directory| fs::read_to_string(directory.join("cgroup.procs")).ok());
        listed
            .flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<i32>>())
            .collect()
    }

    /// Sets limits on version 1, if libcontainer does not.
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

    /// Denies a device on version 1.
    pub(crate) fn deny(&self, (major, minor): (u32, u32)) -> Result<(), RuntimeError> {
        let files = self.directories.iter().map(|directory| directory.join("devices.deny"));
        match files.into_iter().find(|file| file.exists()) {
            Some(file) if !crate::namespace::rootless::in_user_namespace() => {
                fs::write(&file, format!("c {major}:{minor} rwm"))
                    .map_err(|error| RuntimeError::file("cannot set the device rules", file, error))
            }
            _ => Ok(()),
        }
    }

    /// Kills all processes in it and removes it.
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
            if !busy || began.elapsed() > KILL_TIMEOUT {
                return Err(RuntimeError::file("cannot remove the cgroup", directory, error));
            }
            self.kill();
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Sends SIGKILL to all processes in it, until no new ones appear.
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
                // It may be gone already.
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL);
                killed.insert(pid);
            }
        }
    }
}

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

/// An empty cgroup counts as left behind after this time; a new one has no processes yet.
const LEFTOVER_AGE: Duration = Duration::from_secs(2);

/// Removes the empty cgroups below `parent` whose container no longer exists. Returns the number of containers.
pub(crate) fn prune(parent: &str, is_known: &dyn Fn(&str) -> bool) -> usize {
    let (first, second) = machine();
    let mounts = first.iter().chain(second).map(|hierarchy| &hierarchy.point);
    let parents = mounts.map(|mount| mount.join(parent.trim_start_matches('/')));
    let mut removed = BTreeSet::new();
    for entry in parents.filter_map(|parent| fs::read_dir(parent).ok()).flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(id) = name.strip_prefix("cudock-").filter(|id| is_id(id) && !is_known(id)) else { continue };
        let age =
            entry.metadata().and_then(|about| about.modified()).ok().and_then(|then| then.elapsed().ok());
        let left = age.is_some_and(|age| age >= LEFTOVER_AGE);
        if left
            && Cgroup::at(&format!("{parent}/{name}")).processes().is_empty()
            && remove_directory(&entry.path()).is_ok()
        {
            removed.insert(id.to_owned());
        }
    }
    removed.len()
}

/// Whether a text is the id of a container: sixteen hexadecimal digits.
fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn counts_swap() -> bool {
    let (first, _) = machine();
    if first.is_empty() {
        return Path::new("/proc/swaps").exists();
    }
    first.iter().any(|hierarchy| hierarchy.point.join("memory.memsw.limit_in_bytes").exists())
}

/// The hierarchies of version 1.
pub(crate) fn v1_hierarchies() -> &'static [Hierarchy] {
    &machine().0
}

/// The hierarchies of version 1 and that of version 2, which do not change while we run.
fn machine() -> &'static (Vec<Hierarchy>, Option<Hierarchy>) {
    static MACHINE: OnceLock<(Vec<Hierarchy>, Option<Hierarchy>)> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let (second, first) =
            hierarchies(&mountinfo).into_iter().partition::<Vec<_>, _>(Hierarchy::is_unified);
        (first, second.into_iter().next())
    })
}
