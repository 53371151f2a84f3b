//! Starts the watcher of a container, which inherits the container's lock.

pub(crate) mod capabilities;
mod error_capture;
pub(crate) mod executor;
pub mod gpu;
mod init;
pub(crate) mod launch;
pub(crate) mod library_view;
pub mod limits;
pub mod network;
pub(crate) mod overlay;
pub(crate) mod seccomp;
mod spec;
pub mod sysctl;
pub(crate) mod user;

use cudock_base::bug::Parts;
use std::ffi::OsString;
use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use crate::container::config::Private;
use crate::container::home::ContainerDir;
use crate::container::recover::MONITOR;
use crate::container::status::Watch;
use crate::error::{OnError, RuntimeError};
use crate::namespace::reexec;
use crate::namespace::sys;
use crate::supervise::streams::Signals;

/// A detached watcher, until it has reported.
#[derive(Debug)]
pub(crate) struct WatcherReply {
    ready: PipeReader,
    watcher: i32,
}

/// Replaces this process by an attached watcher. Returns only with an error.
pub(crate) fn become_watcher(
    dir: &ContainerDir,
    watch: &Watch,
    private: &Private,
) -> Result<RuntimeError, RuntimeError> {
    reexec::become_sealed(&arguments(dir, watch, &["--attached"])?, private)
}

/// Starts a detached watcher with these flags. The caller leaves the lock to it.
pub(crate) fn start_watcher(
    dir: &ContainerDir,
    watch: &Watch,
    private: &Private,
    flags: &[&str],
) -> Result<WatcherReply, RuntimeError> {
    let (ready, theirs) = std::io::pipe().when("cannot create a pipe")?;
    let theirs: OwnedFd = theirs.into();
    // Only the watcher keeps the other end open, so that its exit is noticed.
    let watcher = reexec::sealed_command(&arguments(dir, watch, flags)?, private)?.spawn_detached(&theirs)?;
    let watcher = i32::try_from(watcher).unwrap_or_default();
    Ok(WatcherReply { ready, watcher })
}

fn arguments(dir: &ContainerDir, watch: &Watch, flags: &[&str]) -> Result<Vec<OsString>, RuntimeError> {
    let mut arguments = vec![MONITOR.into(), dir.path().as_os_str().to_owned()];
    arguments.extend(flags.iter().map(Into::into));
    arguments.extend(["--lock".into(), watch.hand_down()?.to_string().into()]);
    Ok(arguments)
}

impl WatcherReply {
    /// Waits for the report of the watcher. A termination signal is forwarded to the watcher, which
    /// ends the start; at the second one the watcher is killed.
    pub(crate) fn wait(mut self, signals: &mut Signals) -> Result<String, RuntimeError> {
        let mut interrupted = None;
        let mut reply = Vec::new();
        loop {
            let (has_reply, has_signal) = wait_for_either(self.ready.as_fd(), signals.as_fd())?;
            if let Some(signal) = signals.stop_requested().filter(|_| has_signal) {
                let next = if interrupted.is_some() { Signal::SIGKILL } else { Signal::SIGTERM };
                // It may have ended already.
                let _ = sys::kill(self.watcher, next as i32);
                interrupted = Some(signal);
            }
            if has_reply {
                let mut buffer = [0; 4096];
                match self.ready.read(&mut buffer).when("cannot read the watcher's reply")? {
                    0 => break,
                    count => reply.extend_from_slice(buffer.part(..count)),
                }
            }
        }
        let reply = String::from_utf8_lossy(&reply).into_owned();
        match interrupted {
            // It may have started before the signal came.
            Some(signal) if reexec::parse_reply(&reply).is_err() => Err(RuntimeError::Interrupted(signal)),
            _ => Ok(reply),
        }
    }
}

/// Waits until one of them can be read. Returns which.
fn wait_for_either(first: BorrowedFd<'_>, second: BorrowedFd<'_>) -> Result<(bool, bool), RuntimeError> {
    let mut polled = [first, second].map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
    match poll(&mut polled, PollTimeout::NONE) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(RuntimeError::system("cannot wait for the watcher", error)),
    }
    let [first, second] = polled.map(|one| one.revents().is_some_and(|events| !events.is_empty()));
    Ok((first, second))
}
