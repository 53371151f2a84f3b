//! The parent's view of a forwarder process.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::{ForwardOptions, Handover, Listeners, PortMapping};
use crate::child_process::ChildProcess;
use crate::{Namespace, Result, sys};

/// A process that forwards connections from published ports into a namespace. Killed on drop, which closes all its
/// connections.
#[derive(Debug)]
pub struct Forwarder {
    process: ChildProcess,
    mappings: Vec<PortMapping>,
}

impl Forwarder {
    /// Starts `command`, a program that calls [`serve`](super::serve) with its last argument, which is added here.
    ///
    /// The process owns the ports from then on: they are free again when it ends. It gets `SIGTERM` when the calling thread
    /// ends. It has its own process group, so that Ctrl-C in a terminal does not cut connections while the container still
    /// serves them.
    pub fn start(
        mut command: Command,
        listeners: Listeners,
        namespace: &Namespace,
        options: ForwardOptions,
    ) -> Result<Self> {
        let handover = Handover::of(&listeners, namespace.as_fd().as_raw_fd(), options);
        command.arg(handover.encode()).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        sys::tie_to_parent(&mut command, Signal::TERM, handover.descriptors());
        let process = ChildProcess::start(&mut command)?;
        let mappings = listeners.mappings();
        // If they stayed open here, connections would be accepted after the forwarder has ended.
        drop(listeners);
        Ok(Self { process, mappings })
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The forwarded ports, with the host ports actually bound.
    pub fn mappings(&self) -> &[PortMapping] {
        &self.mappings
    }

    /// Waits up to `time`; returns whether the process has exited.
    pub fn ends_within(&self, time: Duration) -> bool {
        self.process.ends_within(time)
    }
}
