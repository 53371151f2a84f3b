//! What people may choose.

use std::time::Duration;

/// The bounds a [`crate::Batcher`] keeps to. What is best within them it learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most rows of a batch. A request with more runs as a batch of its own, of its own size.
    pub max_rows: usize,
    /// Whether requests with more rows than `max_rows` are refused instead.
    pub refuse_larger: bool,
    /// Longest that a request is held back, while the device is idle, for others to join it.
    pub max_wait: Duration,
    /// Row counts the engine likes best, in rising order: batches are cut to them, or padded to the next one. Those
    /// beyond `max_rows` do not count.
    pub preferred: Vec<usize>,
    /// Whether batches are padded to the next preferred size.
    pub pad: bool,
    /// Time within which 99 of 100 requests are to be answered, from admission to the end of their batch.
    pub latency_target: Option<Duration>,
    /// Most rows that wait, and most requests, should there be some without rows. One that is larger than that is let
    /// into an empty queue.
    pub queue_rows: usize,
    /// Most bytes that wait.
    pub queue_bytes: usize,
    /// Requests are refused that would wait longer than this, as far as speed is known.
    pub queue_time: Duration,
    /// Batches that may be with the engine at once. The device is taken to work on one after the other; the lanes
    /// beyond the first are there so that the next batch is filled meanwhile.
    pub lanes: usize,
    /// Whether the engine runs on the processors that also read requests and write answers. If so, running a small
    /// batch while requests are still being read gains nothing, and an idle device waits until the transport is
    /// [quiet](crate::Batcher::quiet), for up to `max_wait`.
    pub shared_cores: bool,
    /// Longest that an idle device with processors of its own waits for the transport to become quiet.
    pub settle: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_rows: 32,
            refuse_larger: false,
            max_wait: Duration::from_millis(2),
            preferred: Vec::new(),
            pad: false,
            latency_target: None,
            queue_rows: 4096,
            queue_bytes: 1 << 30,
            queue_time: Duration::from_secs(1),
            lanes: 1,
            shared_cores: false,
            settle: Duration::from_micros(100),
        }
    }
}
