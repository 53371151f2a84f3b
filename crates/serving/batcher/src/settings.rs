//! The limits that users configure.

use std::time::Duration;

/// Limits of a [`crate::Batcher`]. It learns what is best within them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatcherSettings {
    /// Maximum number of rows of a batch. A request with more rows runs in a batch of its own.
    pub max_rows: usize,
    /// Longest time that a request is held back for others to join it while the device is idle.
    pub max_wait: Duration,
    /// Row counts that the engine runs best, ascending: batches are cut to them, or padded to the next one. Values
    /// beyond `max_rows` are ignored.
    pub preferred_rows: Vec<usize>,
    /// Pad batches to the next preferred row count.
    pub pad: bool,
    /// Time within which 99 % of the requests finish, from admission to the end of their batch.
    pub latency_target: Option<Duration>,
    /// Maximum number of queued rows, and of queued requests, since requests may have no rows. A
    /// larger request is admitted into an empty queue.
    pub max_queued_rows: usize,
    pub max_queued_bytes: usize,
    /// Reject requests that would be queued for longer than this, as far as batch times are known.
    pub max_queue_time: Duration,
    /// Maximum number of batches in the engine at once. The device is assumed to run one after the
    /// other; further lanes are there to fill the next batch meanwhile.
    pub lanes: usize,
    /// Whether the engine runs on the CPU cores that also read requests and write responses. If so, running a small
    /// batch while requests are still being read gains nothing, and an idle device waits up to `max_wait` until
    /// [all reads are drained](crate::Batcher::on_reads_drained).
    pub shared_cores: bool,
    /// Longest time that an idle device with cores of its own waits until all reads are drained.
    pub drain_timeout: Duration,
}

impl Default for BatcherSettings {
    fn default() -> Self {
        Self {
            max_rows: 32,
            max_wait: Duration::from_millis(2),
            preferred_rows: Vec::new(),
            pad: false,
            latency_target: None,
            max_queued_rows: 4096,
            max_queued_bytes: 1 << 30,
            max_queue_time: Duration::from_secs(1),
            lanes: 1,
            shared_cores: false,
            drain_timeout: Duration::from_micros(100),
        }
    }
}
