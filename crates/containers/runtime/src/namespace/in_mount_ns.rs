//! Runs code in a container's mount namespace, between its creation and its start.
//!
//! libcontainer creates links and nodes below `/dev` by paths of the host, and a volume whose links another container
//! changes meanwhile could redirect those paths. So volumes are mounted afterwards, by descriptor: a detached mount is
//! created outside, and attached by a process in the container's mount namespace.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{OnError, RuntimeError};

/// Runs a function in the mount namespace of a process, and returns to our own. Needs a process with one thread.
pub(crate) fn in_mount_ns<T>(
    pid: i32,
    function: impl FnOnce() -> Result<T, RuntimeError>,
) -> Result<T, RuntimeError> {
    let directory = std::env::current_dir().ok();
    let ours = namespace("/proc/self/ns/mnt")?;
    let theirs = namespace(&format!("/proc/{pid}/ns/mnt"))?;
    enter(&theirs)?;
    let outcome = function();
    enter(&ours)?;
    if let Some(directory) = directory {
        let _ = std::env::set_current_dir(directory);
    }
    outcome
}

fn namespace(path: &str) -> Result<OwnedFd, RuntimeError> {
    let path = Path::new(path);
    openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).on("cannot open", path)
}

fn enter(namespace: &OwnedFd) -> Result<(), RuntimeError> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))
        .when("cannot change the mount namespace")
}
