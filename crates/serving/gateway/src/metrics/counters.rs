//! What is counted.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cudock_base::lock;
use cudock_server::Histogram;
use hyper::StatusCode;

/// Largest row counts of the buckets of batch sizes.
pub(super) const BATCH_ROWS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Classes of statuses, by their first digit.
pub(super) const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// How a request is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Sent as part of a batch.
    Batched,
    /// Forwarded unchanged.
    Forwarded,
}

#[derive(Default)]
pub(super) struct RequestMetrics {
    pub(super) statuses: [AtomicU64; STATUS_CLASSES.len()],
    pub(super) seconds: Mutex<Histogram>,
}

#[derive(Default)]
pub(crate) struct GatewayMetrics {
    pub(super) batched: RequestMetrics,
    pub(super) forwarded: RequestMetrics,
    pub(super) splits: AtomicU64,
    pub(super) alone: AtomicU64,
    pub(super) wakes: AtomicU64,
}

impl GatewayMetrics {
    /// Records the head of a response.
    pub(crate) fn responded(&self, kind: RequestKind, status: StatusCode, time: Duration) {
        let requests = match kind {
            RequestKind::Batched => &self.batched,
            RequestKind::Forwarded => &self.forwarded,
        };
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = requests.statuses.get(class) {
            increment(count);
        }
        lock(&requests.seconds).record(time);
    }

    /// A batch was rejected and is tried in halves.
    pub(crate) fn split(&self) {
        increment(&self.splits);
    }

    /// A request that may share a batch is sent by itself, because answers cannot be split.
    pub(crate) fn sent_alone(&self) {
        increment(&self.alone);
    }

    /// The command that starts an upstream was run.
    pub(crate) fn woken(&self) {
        increment(&self.wakes);
    }
}

#[derive(Default)]
pub(crate) struct UpstreamMetrics {
    pub(super) failures: AtomicU64,
    pub(super) ejections: AtomicU64,
    pub(super) rows: AtomicU64,
    /// Batches by their size; those larger than all buckets are in the last one.
    pub(super) sizes: [AtomicU64; BATCH_ROWS.len() + 1],
    pub(super) seconds: Mutex<Histogram>,
}

impl UpstreamMetrics {
    pub(crate) fn failed(&self) {
        increment(&self.failures);
    }

    pub(crate) fn ejected(&self) {
        increment(&self.ejections);
    }

    /// Records an answer to a batch of that many rows.
    pub(crate) fn answered(&self, rows: usize, time: Duration) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        if let Some(size) = self.sizes.get(BATCH_ROWS.partition_point(|&most| most < rows)) {
            increment(size);
        }
        lock(&self.seconds).record(time);
    }
}

fn increment(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
