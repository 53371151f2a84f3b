//! What a batcher knows, for metrics and pages.

use std::time::Duration;

/// What was learned so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Batch sizes and their times, smallest first.
    pub sizes: Vec<LearnedSize>,
    /// Time between two arrivals.
    pub gap: Option<Duration>,
    /// Time from an answer to the next arrival.
    pub return_time: Option<Duration>,
    /// Time to fill a lane's buffers for one batch.
    pub fill_time: Option<Duration>,
    /// Clients that seem to be there.
    pub clients: usize,
    /// Share of the latency target that is planned for, so that what cannot be foreseen fits in the rest.
    pub planned_share: f64,
}

/// A batch size and how long it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearnedSize {
    /// Mean rows of the batches put together here.
    pub rows: f64,
    /// How long they take.
    pub time: Duration,
    /// How many of them there were.
    pub batches: u32,
}
