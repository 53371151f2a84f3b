//! Leftovers of containers: processes, mounts, control groups, directories.

use std::fs;
use std::path::{Path, PathBuf};

/// A description of everything that is left of the containers of one test.
pub(crate) fn leftovers(data: &Path, cgroup: &str) -> Vec<String> {
    let containers = fs::read_dir(data.join("containers")).into_iter().flatten().flatten();
    let directories = containers.map(|entry| format!("the directory {}", entry.path().display()));
    let groups = groups(cgroup).into_iter().map(|group| format!("the control group {}", group.display()));
    directories.chain(groups).chain(processes(data)).collect()
}

/// Processes with the directory on their command line, or with a mount from it. One that left the
/// machine's mount namespace keeps the mounts of its own; so this finds mounts, too.
fn processes(data: &Path) -> Vec<String> {
    let data = data.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let (mounts, command_line) = (read("mountinfo"), read("cmdline"));
        let command_line = String::from_utf8_lossy(&command_line).replace('\0', " ");
        if pid == std::process::id() {
            let mounted = String::from_utf8_lossy(&mounts).contains(data);
            found.extend(mounted.then(|| "a mount in the machine's own mount namespace".to_owned()));
        } else if command_line.contains(data) || String::from_utf8_lossy(&mounts).contains(data) {
            found.push(format!("process {pid}: {command_line}"));
        }
    }
    found
}

/// Control groups below a test's own, in every hierarchy.
pub(crate) fn groups(cgroup: &str) -> Vec<PathBuf> {
    let below = |hierarchy: PathBuf| {
        let entries =
            fs::read_dir(hierarchy.join(cgroup.trim_start_matches('/'))).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
    };
    hierarchies().into_iter().flat_map(below).collect()
}

/// Mount points of control groups.
pub(crate) fn hierarchies() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let of_groups = |line: &&str| {
        line.split_once(" - ")
            .is_some_and(|(_, after)| matches!(after.split(' ').next(), Some("cgroup" | "cgroup2")))
    };
    mounts.lines().filter(of_groups).map(|line| PathBuf::from(line.split(' ').nth(4).unwrap())).collect()
}
