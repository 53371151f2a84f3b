//! Starts a supervisor: what it is handed, and what it reports.

use cudock_base::bug::Parts;
use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};

use super::dir::{GroupDir, GroupLock};
use super::flags::GroupSettings;
use crate::container::config::NetworkConfig;
use crate::container::recover::SUPERVISE;
use crate::error::{OnError, RuntimeError};
use crate::namespace::reexec;

/// Settings that a supervisor receives in memory. The text contains secrets.
#[derive(Serialize, Deserialize)]
pub struct GroupHandover {
    /// The text of the group file, which was validated.
    pub text: String,
    /// The name of the group, which may differ from the file's.
    pub name: String,
    pub home: PathBuf,
    pub network: NetworkConfig,
    /// Directories of this machine in place of volumes: name, directory.
    pub volumes: Vec<(String, PathBuf)>,
}

impl std::fmt::Debug for GroupHandover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupHandover").field("name", &self.name).finish_non_exhaustive()
    }
}

impl GroupHandover {
    pub fn new(text: String, name: String, home: PathBuf, settings: &GroupSettings) -> Self {
        let volumes =
            settings.volumes.iter().map(|(name, directory)| (name.clone(), directory.clone())).collect();
        Self { text, name, home, network: settings.network.clone(), volumes }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// All containers are ready, or have succeeded.
    Ready,
    /// They are not, for this reason.
    NotReady(String),
    TimedOut,
}

pub(super) const READY: &str = "ready";
pub(super) const NOT_READY: &str = "not ready";

fn supervise_args(dir: &GroupDir, lock: &GroupLock) -> Result<Vec<OsString>, RuntimeError> {
    let lock = lock.hand_down()?.to_string();
    Ok(vec![SUPERVISE.into(), dir.path().as_os_str().to_owned(), "--lock".into(), lock.into()])
}

/// Replaces this process by the supervisor of a group, attached to our outputs. Returns only with an error.
pub fn become_supervisor(
    dir: &GroupDir,
    lock: &GroupLock,
    handover: &GroupHandover,
) -> Result<RuntimeError, RuntimeError> {
    let mut args = supervise_args(dir, lock)?;
    args.push("--attached".into());
    reexec::become_sealed(&args, handover)
}

/// Starts a detached supervisor, and waits until its containers are ready, until one of them fails, or until `limit` has
/// passed; the group keeps running then.
pub fn start_detached(
    dir: &GroupDir,
    lock: GroupLock,
    handover: &GroupHandover,
    limit: Option<Duration>,
) -> Result<StartOutcome, RuntimeError> {
    let (ready, theirs) = std::io::pipe().when("cannot create a pipe")?;
    let args = supervise_args(dir, &lock)?;
    reexec::sealed_command(&args, handover)?.spawn_detached(&OwnedFd::from(theirs))?;
    drop(lock);
    let Some(reply) = read_reply(ready, limit).when("cannot read the supervisor's reply")? else {
        return Ok(StartOutcome::TimedOut);
    };
    match reply.split_once('\n') {
        _ if reply == READY => Ok(StartOutcome::Ready),
        Some((NOT_READY, reason)) => Ok(StartOutcome::NotReady(reason.to_owned())),
        _ if reply.is_empty() => {
            Err(RuntimeError::reported("the group's supervisor exited before its containers ran"))
        }
        _ => reexec::parse_reply(&reply).map(|()| StartOutcome::Ready),
    }
}

/// The whole reply of a supervisor; `None` if it is not complete in time.
fn read_reply(mut from: PipeReader, limit: Option<Duration>) -> io::Result<Option<String>> {
    let until = limit.map(|limit| Instant::now() + limit);
    let mut reply = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        // A wait longer than the kernel allows is repeated.
        let limit =
            left.map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
        match poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], limit) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match from.read(&mut buffer)? {
            0 => return Ok(Some(String::from_utf8_lossy(&reply).into_owned())),
            count => reply.extend_from_slice(buffer.part(..count)),
        }
    }
}
