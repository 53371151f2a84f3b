//! Messages to a supervisor from the threads that wait on its behalf.

use cudock_group::probe::ProbeAttempt;
use nix::sys::signal::Signal;

#[derive(Debug)]
pub(super) enum Message {
    /// A signal: a child exited, or the group is to stop.
    Signal(Signal),
    /// The watcher of a container reported the start, or exited without a report.
    Began {
        name: String,
        run: u64,
        /// The report; empty without one.
        reply: String,
    },
    Probed {
        name: String,
        run: u64,
        probe: usize,
        attempt: ProbeAttempt,
        outcome: Result<(), String>,
    },
}
