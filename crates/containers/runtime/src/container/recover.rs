//! Recovers the status of a running container or group whose status file is damaged.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::container::home::ContainerDir;
use crate::container::status::{ContainerState, ContainerStatus, process_began};
use crate::error::RuntimeError;

/// The verb of watchers.
pub(crate) const MONITOR: &str = "monitor";
/// The verb of supervisors.
pub(crate) const SUPERVISE: &str = "supervise";

pub(crate) const DAMAGED: &str = "its status file is damaged";

impl ContainerDir {
    /// The status without its file. A container without a watcher does not run: after a power cut,
    /// for example, which ended both.
    pub(crate) fn status_without_file(&self) -> Result<ContainerStatus, RuntimeError> {
        let error = Some(DAMAGED.to_owned());
        if !self.is_watched()? {
            let state = ContainerState::Lost;
            return Ok(ContainerStatus { state, error, ..ContainerStatus::default() });
        }
        let watcher = helper_process(MONITOR, self.path());
        let pid = watcher.and_then(first_process);
        Ok(ContainerStatus {
            state: if pid.is_some() { ContainerState::Running } else { ContainerState::Created },
            watcher,
            pid,
            pid_began: pid.and_then(process_began),
            error,
            ..ContainerStatus::default()
        })
    }
}

/// The child of a watcher that is PID 1 of its container.
fn first_process(watcher: u32) -> Option<i32> {
    let is_first = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        is_first_process(&status, watcher)
    };
    processes().find(is_first).and_then(|pid| i32::try_from(pid).ok())
}

/// Whether a process is a child of another, and PID 1 of a namespace just below ours, by its `/proc/PID/status`.
fn is_first_process(status: &str, parent: u32) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let pids: Vec<&str> = field("NSpid").into_iter().flat_map(str::split_whitespace).collect();
    field("PPid").is_some_and(|pid| pid.trim().parse() == Ok(parent)) && matches!(pids.as_slice(), [_, "1"])
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process of this user that runs a hidden verb of this program for a directory.
pub(crate) fn helper_process(verb: &str, directory: &Path) -> Option<u32> {
    let user = rustix::process::geteuid().as_raw();
    let is_helper = |process: &Path| {
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        let mut arguments = arguments.split(|byte| *byte == 0).skip(1);
        arguments.next() == Some(verb.as_bytes())
            && arguments.next() == Some(directory.as_os_str().as_bytes())
            // Others can give their processes any arguments.
            && process.metadata().is_ok_and(|about| about.uid() == user)
    };
    processes().find(|pid| is_helper(Path::new(&format!("/proc/{pid}"))))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use cudock_testkit::client::eventually;
    use cudock_testkit::process::ChildGuard;

    use super::*;

    #[test]
    fn the_first_process_of_a_container_is_distinguished_from_those_of_containers_in_it() {
        let status = |pids: &str| format!("Name:\tsh\nPPid:\t4241\nNSpid:\t{pids}\n");
        assert!(is_first_process(&status("4242\t1"), 4241));
        assert!(!is_first_process(&status("4242\t1"), 4240), "of another watcher");
        for pids in ["4242\t7", "4242\t57\t1", "1", ""] {
            assert!(!is_first_process(&status(pids), 4241), "{pids}");
        }
    }

    #[test]
    fn a_helper_is_found_by_its_verb_and_directory() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(helper_process("-f", &file), None);
        let helper = ChildGuard(Command::new("tail").arg("-f").arg(&file).spawn().unwrap());
        eventually("it is found", || helper_process("-f", &file) == Some(helper.0.id()));
        assert_eq!(helper_process("-f", directory.path()), None);
    }
}
