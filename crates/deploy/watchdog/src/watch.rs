//! The loop: sample, decide, delete.

use std::time::Duration;

use cudock_azure::Call;

use crate::activity::{ActivitySample, ActivityWatch, EndReason, WatchLimits};
use crate::deletion::{Deletion, DeletionAction, DeletionCalls, DeletionEnd};

/// The outside world of a watch.
pub trait WatchIo {
    /// The time since the start. It never goes backward.
    fn now(&self) -> Duration;
    /// Waits until a time since the start.
    fn sleep_until(&mut self, time: Duration);
    fn sample(&mut self) -> ActivitySample;
    /// Sends a request as the deployment's identity. Returns the status, or none without a response.
    fn send(&mut self, call: &Call) -> Option<u16>;
    /// Writes a line to the log.
    fn log(&mut self, line: &str);
}

/// Watches until the deployment is to be deleted, and deletes it.
pub fn watch(limits: &WatchLimits, calls: &DeletionCalls, io: &mut impl WatchIo) -> (EndReason, DeletionEnd) {
    let reason = wait_for_end(limits, io);
    io.log(&format!("deleting the deployment: {reason}"));
    let mut deletion = Deletion::new(calls.clone(), io.now());
    loop {
        match deletion.next(io.now()) {
            DeletionAction::WaitUntil(time) => io.sleep_until(time),
            DeletionAction::End(end) => return (reason, end),
            DeletionAction::Send(call) => {
                let status = io.send(&call);
                let outcome = status.map_or_else(|| "no response".to_owned(), |status| status.to_string());
                let path = call.path.split('?').next().unwrap_or_default();
                io.log(&format!("{} {path}: {outcome}", call.method));
                deletion.on_response(io.now(), status);
            }
        }
    }
}

fn wait_for_end(limits: &WatchLimits, io: &mut impl WatchIo) -> EndReason {
    let mut activity = ActivityWatch::new(limits.clone());
    loop {
        let sample = io.sample();
        let now = io.now();
        if let Some(reason) = activity.observe(now, &sample) {
            return reason;
        }
        io.sleep_until(now.saturating_add(limits.interval));
    }
}
