//! The interface of what runs trials: this machine, or a service.

use std::time::Duration;

use cudock_base::Timestamp;
use cudock_sweep::{Assignment, Event, TrialHandle, TrialId};

/// Runs attempts of trials, and reports their events.
pub trait Runner {
    type Error: std::error::Error;

    /// Whether attempts continue when this machine loses power. Then each intent is on disk before
    /// it is carried out.
    const OUTLIVES_MACHINE: bool;

    /// The time on the clock by which attempts are timed and paid.
    fn now(&self) -> Timestamp;

    /// Starts an attempt. Its `Starting` is in the journal. Events about it come from `poll`, also if it cannot be started.
    fn start(&mut self, attempt: &AttemptToStart<'_>);

    /// Requests an attempt to end; its `Ended` comes from `poll`.
    fn stop(&mut self, trial: TrialId, attempt: u32);

    /// The events since the last call, in order; waits for at most `timeout`.
    fn poll(&mut self, timeout: Duration) -> Result<Vec<RunnerEvent>, Self::Error>;

    /// Recovers attempts that the journal says may exist, but that this runner has not started:
    /// each is adopted, and its events come from `poll`, or its `Ended` is among the returned
    /// events. Afterwards nothing else of the sweep is running.
    fn recover(&mut self, live: &[LiveAttempt]) -> Result<Vec<RunnerEvent>, Self::Error>;

    /// Ends everything that runs. `recover` reports the attempts as lost.
    fn shut_down(&mut self) -> Result<(), Self::Error>;
}

/// An attempt to start.
#[derive(Debug, Clone, Copy)]
pub struct AttemptToStart<'a> {
    pub trial: TrialId,
    pub attempt: u32,
    /// When its `Starting` was recorded.
    pub starting: Timestamp,
    /// The slot, which no other attempt has.
    pub slot: u32,
    pub parameters: &'a Assignment,
}

/// An attempt that may exist.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveAttempt {
    pub trial: TrialId,
    pub attempt: u32,
    pub starting: Timestamp,
    /// None if it was killed before its start was recorded.
    pub handle: Option<TrialHandle>,
}

/// An event of a runner.
#[derive(Debug, Clone, PartialEq)]
pub enum RunnerEvent {
    /// `Started`, `Reported` or `Ended`.
    Event(Event),
    /// Something the user should know about a trial.
    Warning(String),
}
