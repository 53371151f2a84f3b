//! What goes in and what comes out.

use std::time::Duration;

use crate::Time;

/// The caller's name for a request. No two requests that are queued at the same time may have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A request that wants to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its name.
    pub ticket: Ticket,
    /// Rows it takes of a batch.
    pub rows: usize,
    /// Only requests of the same bucket share a batch: a hash of all that must agree, which is the shape without its
    /// rows after it was padded.
    pub bucket: u64,
    /// Memory it holds while it waits.
    pub bytes: usize,
    /// Smaller is sooner. All from [`crate::LEVELS`] − 1 on are the same.
    pub priority: u32,
    /// When its answer is of no use any more.
    pub deadline: Option<Time>,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is more to do already than the settings allow to wait.
    #[error("the queue is full; it is worked off in {retry_after:?}")]
    Full {
        /// When what is queued now will have been run.
        retry_after: Duration,
    },
    /// Its deadline has passed, or will have before it could be answered.
    #[error("the deadline cannot be met")]
    Late,
    /// It is larger than requests may be.
    #[error("the request has more than {max} rows")]
    TooManyRows {
        /// The most rows a request may have.
        max: usize,
    },
}

/// Requests to be run together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its name, for [`crate::Batcher::finished`].
    pub id: u64,
    /// The bucket of all its requests.
    pub bucket: u64,
    /// Its requests, in the order of their rows.
    pub tickets: Vec<Ticket>,
    /// Rows of all its requests together.
    pub rows: usize,
    /// Rows the engine is to run: `rows`, or more where sizes are padded.
    pub padded_rows: usize,
}

/// What a free lane is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Run this now.
    Run(Batch),
    /// Ask again at that time, or as soon as anything was admitted, finished or reported quiet.
    WaitUntil(Time),
    /// Nothing can be run before something is admitted or finished.
    Idle,
}
