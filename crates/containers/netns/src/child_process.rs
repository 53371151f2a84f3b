//! A child process that ends with its parent.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::{NetnsError, Result};

/// How long a process may take to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// A child process, killed on drop.
///
/// It is referred to by a pidfd and not by its pid, so that the wrong process is never signaled: another part of the program
/// may wait for all children at any time, which frees the pid.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    child: Child,
    descriptor: OwnedFd,
    /// The process that started it: a copy in a forked process must not kill it.
    owner: u32,
}

impl ChildProcess {
    /// Starts it. The caller ties its lifetime to the parent with [`crate::sys::tie_to_parent`].
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(source) => return Err(NetnsError::Start { program, source }),
        };
        match rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Self { child, descriptor, owner: std::process::id() }),
            Err(error) => {
                // Nothing has waited for it yet, so the pid is still valid.
                let _ = child.kill();
                let _ = child.wait();
                Err(NetnsError::Start { program, source: error.into() })
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits up to `time`; returns whether the process has exited.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        let Ok(limit) = Timespec::try_from(time) else { return false };
        let mut watched = [PollFd::new(&self.descriptor, PollFlags::IN)];
        matches!(rustix::event::poll(&mut watched, Some(&limit)), Ok(1..))
    }

    /// Terminates it, then kills it if necessary; returns the exit status unless it was already collected.
    pub(crate) fn stop(&mut self) -> Option<ExitStatus> {
        self.signal(Signal::TERM);
        if !self.ends_within(GRACE) {
            self.signal(Signal::KILL);
        }
        self.child.wait().ok()
    }

    fn signal(&self, signal: Signal) {
        // It may have exited already.
        let _ = rustix::process::pidfd_send_signal(self.descriptor.as_fd(), signal);
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
