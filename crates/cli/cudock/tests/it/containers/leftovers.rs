//! What a container may not leave behind: processes, mounts, control groups, folders.

use std::fs;
use std::path::{Path, PathBuf};

/// Everything that is left of the containers of one test, in words.
pub(crate) fn leftovers(data: &Path, cgroup: &str) -> Vec<String> {
    let containers = fs::read_dir(data.join("containers")).into_iter().flatten().flatten();
    let folders = containers.map(|entry| format!("the folder {}", entry.path().display()));
    let groups = groups(cgroup).into_iter().map(|group| format!("the control group {}", group.display()));
    folders.chain(groups).chain(processes(data)).collect()
}

/// Processes that name the folder on their command line, or that see something of it mounted. One that left the
/// machine's mount namespace holds what is mounted in its own; so this finds mounts, too.
fn processes(data: &Path) -> Vec<String> {
    let data = data.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let (mounts, words) = (read("mountinfo"), read("cmdline"));
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        if pid == std::process::id() {
            let mounted = String::from_utf8_lossy(&mounts).contains(data);
            found.extend(mounted.then(|| "a mount in the machine's own mount namespace".to_owned()));
        } else if words.contains(data) || String::from_utf8_lossy(&mounts).contains(data) {
            found.push(format!("process {pid}: {words}"));
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

/// Where control groups are mounted.
pub(crate) fn hierarchies() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let of_groups = |line: &&str| {
        line.split_once(" - ")
            .is_some_and(|(_, after)| matches!(after.split(' ').next(), Some("cgroup" | "cgroup2")))
    };
    mounts.lines().filter(of_groups).map(|line| PathBuf::from(line.split(' ').nth(4).unwrap())).collect()
}
