//! Joins the namespaces of a container that is being created.
//!
//! An engine runs `createContainer` hooks in the container's pid namespace before its root is changed: where that is shared
//! with another container, as in a pod, a process there with `CAP_SYS_PTRACE` follows `/proc/PID/root` of the hook to
//! the host. So ours are `createRuntime` hooks, which run in the engine's own namespaces after everything is mounted, and
//! join the mount and user namespaces of the container by themselves.

use std::fs;
use std::os::fd::AsFd;

use rustix::process::{Gid, Pid, PidfdFlags, Uid, pidfd_open};
use rustix::thread::{
    ThreadNameSpaceType, move_into_thread_name_spaces, set_thread_res_gid, set_thread_res_uid,
};

use crate::InjectError;

/// The namespaces that determine which files exist and who owns them.
const JOINED: [(&str, ThreadNameSpaceType); 2] =
    [("mnt", ThreadNameSpaceType::MOUNT), ("user", ThreadNameSpaceType::USER)];

/// Joins the mount and user namespaces of a process, as root of the latter. Needs a process with one thread.
pub(super) fn join(pid: i32) -> Result<(), InjectError> {
    let failed = |error: rustix::io::Errno| {
        InjectError::Hook(format!("cannot join the namespaces of process {pid}: {error}"))
    };
    let container = Pid::from_raw(pid).ok_or_else(|| failed(rustix::io::Errno::SRCH))?;
    let container = pidfd_open(container, PidfdFlags::empty()).map_err(failed)?;
    let namespace = |process: &str, name: &str| fs::read_link(format!("/proc/{process}/ns/{name}")).ok();
    let foreign =
        JOINED.iter().filter(|(name, _)| namespace("self", name) != namespace(&pid.to_string(), name));
    let foreign = foreign.fold(ThreadNameSpaceType::empty(), |all, (_, kind)| all | *kind);
    if foreign.is_empty() {
        return Ok(());
    }
    move_into_thread_name_spaces(container.as_fd(), foreign).map_err(failed)?;
    if foreign.contains(ThreadNameSpaceType::USER) {
        // The user of the host is not mapped there, so its files would have the overflow owner.
        set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).map_err(failed)?;
        set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).map_err(failed)?;
    }
    Ok(())
}
