//! The batcher's inputs and outputs.

use std::time::Duration;

use crate::Time;

/// The caller's number for a request. It must be unique among the queued requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub ticket: Ticket,
    /// Rows that it adds to a batch.
    pub rows: usize,
    /// Only requests of the same bucket share a batch. It is a hash of everything that must be equal: the padded shape
    /// without the row dimension.
    pub bucket: u64,
    /// Memory that it holds while it is queued.
    pub bytes: usize,
    /// Priority; smaller values run first. Values from [`crate::LEVELS`] − 1 on are equal.
    pub priority: u32,
    pub deadline: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// The queue has reached one of its limits.
    #[error("the queue is full; retry after {retry_after:?}")]
    QueueFull {
        /// Time until everything that is queued now has run.
        retry_after: Duration,
    },
    /// The deadline has passed, or will pass before the request could finish.
    #[error("the deadline cannot be met")]
    DeadlineUnreachable,
}

/// Requests that run together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Identifier for [`crate::Batcher::on_finished`].
    pub id: u64,
    pub bucket: u64,
    /// Its requests, in row order.
    pub tickets: Vec<Ticket>,
    pub rows: usize,
    /// Rows that the engine runs: `rows`, or more if batches are padded.
    pub padded_rows: usize,
}

/// The next action of a free lane. A queue around the batcher has batches and times of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneAction<B = Batch, T = Time> {
    Run(B),
    /// Call again at this time, or earlier if a request is admitted, a batch finishes or the reads are drained.
    WaitUntil(T),
    /// Nothing can run until a request is admitted or a batch finishes.
    Idle,
}
