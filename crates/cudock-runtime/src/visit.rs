//! A moment in a container's mount namespace, between its creation and its start.
//!
//! libcontainer makes links and nodes below `/dev` by paths of this machine, and a volume whose links another container
//! changes meanwhile could lead those paths out. So volumes are mounted after it has done its part, by handle: a mount
//! that is attached nowhere is made outside, and put in its place by a process that sees the container's root as its own.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{OnFile, OnSystem, RuntimeError};

/// Does something with the container's mounts for our own, and comes back. Needs a process with one thread.
pub(crate) fn in_mounts_of<T>(
    pid: i32,
    visit: impl FnOnce() -> Result<T, RuntimeError>,
) -> Result<T, RuntimeError> {
    let before = std::env::current_dir().ok();
    let ours = namespace("/proc/self/ns/mnt")?;
    let theirs = namespace(&format!("/proc/{pid}/ns/mnt"))?;
    enter(&theirs)?;
    let outcome = visit();
    enter(&ours)?;
    if let Some(before) = before {
        let _ = std::env::set_current_dir(before);
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
