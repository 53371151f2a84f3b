//! The start of a supervisor: what it is handed, and what it answers.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};

use super::dir::{GroupDir, GroupLock};
use super::make::Settings;
use crate::error::{OnSystem, RuntimeError};
use crate::plan::NetworkPlan;
use crate::reexec;

/// What a supervisor is told in memory. The text holds secrets.
#[derive(Serialize, Deserialize)]
pub struct Handover {
    /// The file, word for word: it was found good.
    pub text: String,
    /// The name of the group, where it is not the file's.
    pub name: String,
    /// Where containers are kept.
    pub home: PathBuf,
    /// The network of the group, and its published ports.
    pub network: NetworkPlan,
    /// Directories of this machine in the place of volumes: name, directory.
    pub volumes: Vec<(String, PathBuf)>,
}

impl std::fmt::Debug for Handover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handover").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Handover {
    /// Of a group that was made by these settings.
    pub fn new(text: String, name: String, home: PathBuf, settings: &Settings) -> Self {
        let volumes =
            settings.volumes.iter().map(|(name, directory)| (name.clone(), directory.clone())).collect();
        Self { text, name, home, network: settings.network.clone(), volumes }
    }
}

/// How a group came up that goes on without us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// All its containers run and are ready, or have done their work.
    Ready,
    /// They do not, for this reason.
    NotReady(String),
    /// They are not ready yet, and the time for it is over.
    TimedOut,
}

pub(super) const READY: &str = "ready";
pub(super) const NOT_READY: &str = "not ready";

fn words(dir: &GroupDir, lock: &GroupLock) -> Result<Vec<OsString>, RuntimeError> {
    let lock = lock.hand_down()?.to_string();
    Ok(vec!["supervise".into(), dir.path().as_os_str().to_owned(), "--lock".into(), lock.into()])
}

/// Becomes the supervisor of a group, connected to our outputs. Comes back only with the reason why not.
pub fn take_over(
    dir: &GroupDir,
    lock: &GroupLock,
    handover: &Handover,
) -> Result<RuntimeError, RuntimeError> {
    let mut words = words(dir, lock)?;
    words.push("--attached".into());
    reexec::become_sealed(&words, handover)
}

/// Starts a supervisor that goes on without us, and waits until its containers are ready, or it is plain that they will
/// not be, or `limit` has passed; the group goes on then.
pub fn start_detached(
    dir: &GroupDir,
    lock: GroupLock,
    handover: &Handover,
    limit: Option<Duration>,
) -> Result<Started, RuntimeError> {
    let (ready, theirs) = std::io::pipe().when("cannot hear from the supervisor")?;
    let words = words(dir, &lock)?;
    reexec::sealed_command(&words, handover)?.spawn_detached(&OwnedFd::from(theirs))?;
    drop(lock);
    let Some(answer) = hear(ready, limit).when("cannot hear from the supervisor")? else {
        return Ok(Started::TimedOut);
    };
    match answer.split_once('\n') {
        _ if answer == READY => Ok(Started::Ready),
        Some((NOT_READY, why)) => Ok(Started::NotReady(why.to_owned())),
        _ if answer.is_empty() => {
            Err(RuntimeError::said("the group's supervisor ended before its containers ran"))
        }
        _ => reexec::reported(&answer).map(|()| Started::Ready),
    }
}

/// Everything a supervisor says; none where it has not said it in time.
fn hear(mut from: PipeReader, limit: Option<Duration>) -> io::Result<Option<String>> {
    let until = limit.map(|limit| Instant::now() + limit);
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        // A wait longer than the kernel takes is begun again.
        let limit =
            left.map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
        match poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], limit) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match from.read(&mut buffer)? {
            0 => return Ok(Some(String::from_utf8_lossy(&answer).into_owned())),
            count => answer.extend_from_slice(buffer.get(..count).unwrap_or_default()),
        }
    }
}
