//! The forwarder's process, as its parent sees it.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::{Handover, Listeners, Options, Publication};
use crate::helper::Helper;
use crate::{Namespace, Result, sys};

/// A process that carries connections from published ports into a namespace. Dropping this ends it, and with it all
/// the connections.
#[derive(Debug)]
pub struct Forwarder {
    helper: Helper,
    publications: Vec<Publication>,
}

impl Forwarder {
    /// Starts `command`, which must be a program that calls [`serve`](super::serve) with the last of its arguments,
    /// added here.
    ///
    /// The ports belong to that process from then on: when it ends they are free again. It gets `SIGTERM` when the
    /// thread that called this ends. It is in a process group of its own, so that Ctrl-C on a terminal does not cut
    /// connections while the container still answers on them.
    pub fn start(
        mut command: Command,
        listeners: Listeners,
        namespace: &Namespace,
        options: Options,
    ) -> Result<Self> {
        let handover = Handover::of(&listeners, namespace.as_fd().as_raw_fd(), options);
        command.arg(handover.encode()).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        sys::tie(&mut command, Signal::TERM, handover.descriptors());
        let helper = Helper::start(&mut command)?;
        let publications = listeners.publications();
        // Were they open here, too, connections would be let in after the forwarder's end.
        drop(listeners);
        Ok(Self { helper, publications })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.helper.pid()
    }

    /// What it forwards, each with the port it really got.
    pub fn publications(&self) -> &[Publication] {
        &self.publications
    }

    /// Whether it ends within this time; it should not before it is told to.
    pub fn ends_within(&self, time: Duration) -> bool {
        self.helper.ends_within(time)
    }

    /// Ends it. Says how it ended, unless somebody else has taken its exit status.
    pub fn stop(mut self) -> Option<ExitStatus> {
        self.helper.stop()
    }
}
