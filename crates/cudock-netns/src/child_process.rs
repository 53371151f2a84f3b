//! A process that works for us and ends when we do.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::{Error, Result};

/// How long a process may take to end by itself once it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// A process of ours. Dropping this ends it.
///
/// It is held by a descriptor and not by its number, so that the wrong process is never hit: whoever waits for all
/// children at once, as monitors do, may take its exit status at any time.
#[derive(Debug)]
pub(crate) struct Helper {
    child: Child,
    descriptor: OwnedFd,
    /// A copy of this value in a forked process must not end what belongs to the original.
    owner: u32,
}

impl Helper {
    /// Starts it. What ties it to us is for the caller to arrange, by [`crate::sys::tie`].
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(source) => return Err(Error::Start { program, source }),
        };
        match rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Self { child, descriptor, owner: std::process::id() }),
            Err(error) => {
                // Nothing else has waited for it yet, so that its number is still its own.
                let _ = child.kill();
                let _ = child.wait();
                Err(Error::Start { program, source: error.into() })
            }
        }
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended within this time.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        let Ok(limit) = Timespec::try_from(time) else { return false };
        let mut watched = [PollFd::new(&self.descriptor, PollFlags::IN)];
        matches!(rustix::event::poll(&mut watched, Some(&limit)), Ok(1..))
    }

    /// Asks it to end, makes it end if it does not, and says how it ended if nobody else has asked before.
    pub(crate) fn stop(&mut self) -> Option<ExitStatus> {
        self.signal(Signal::TERM);
        if !self.ends_within(GRACE) {
            self.signal(Signal::KILL);
        }
        self.child.wait().ok()
    }

    fn signal(&self, signal: Signal) {
        // It may have ended already, which is what was wanted.
        let _ = rustix::process::pidfd_send_signal(self.descriptor.as_fd(), signal);
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
