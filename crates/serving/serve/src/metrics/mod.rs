//! Counters for the status page, Prometheus and Triton's statistics.
//!
//! A lane reports a whole batch at once, under one short lock, so that counting does not slow down requests.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cudock_base::lock;
use cudock_batcher::Time;
use cudock_server::{Histogram, Percentiles};
use serde::Serialize;

/// Length of the window of recent percentiles, in seconds.
const WINDOW: usize = 10;

/// When a batch was formed, and when the engine began and ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunTimes {
    pub(crate) dispatched: Time,
    pub(crate) begun: Time,
    pub(crate) ended: Time,
}

/// Timestamps of a batch and of its requests.
pub(crate) struct BatchTimes<Received> {
    pub(crate) run: RunTimes,
    pub(crate) rows: usize,
    pub(crate) received: Received,
}

#[derive(Default)]
pub(crate) struct ModelMetrics {
    rejected: AtomicU64,
    expired: AtomicU64,
    canceled: AtomicU64,
    failed: AtomicU64,
    restarts: AtomicU64,
    splits: AtomicU64,
    input_nanos: AtomicU64,
    output_nanos: AtomicU64,
    batches: Mutex<Batches>,
}

#[derive(Default)]
struct Batches {
    counts: RequestCounts,
    stages: Stages,
    sizes: Vec<BatchSize>,
    recent: [SecondBucket; WINDOW],
}

#[derive(Clone, Default)]
pub(crate) struct Stages {
    /// Time between the request's first byte and the forming of its batch.
    pub(crate) queue: Histogram,
    /// The engine, copies included.
    pub(crate) compute: Histogram,
    /// Time between the request's first byte and the reply.
    pub(crate) total: Histogram,
}

#[derive(Clone, Default)]
struct SecondBucket {
    number: u64,
    stages: Stages,
}

/// Latency by stage, in milliseconds; `None` if nothing finished in the last ten seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Latencies {
    /// Time between the request's last byte and the start of its batch.
    pub(crate) queue: Option<Percentiles>,
    /// Time in the engine.
    pub(crate) compute: Option<Percentiles>,
    /// Time between the request's last byte and the response's first byte.
    pub(crate) total: Option<Percentiles>,
}

/// Finished requests by result; each one is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RequestCounts {
    /// Successful.
    pub(crate) requests: u64,
    pub(crate) rows: u64,
    pub(crate) batches: u64,
    /// Rejected because the queue was full or the server was shutting down.
    #[serde(rename = "refused")]
    pub(crate) rejected: u64,
    /// Invalid, or failed in the engine.
    pub(crate) failed: u64,
    /// The client disconnected.
    pub(crate) canceled: u64,
    /// The deadline passed in the queue.
    pub(crate) expired: u64,
}

/// Batches with that many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BatchSize {
    pub(crate) rows: usize,
    pub(crate) count: u64,
    /// Nanoseconds of compute.
    #[serde(skip)]
    pub(crate) nanos: u64,
}

#[derive(Clone, Default)]
pub(crate) struct ModelTotals {
    pub(crate) counts: RequestCounts,
    pub(crate) restarts: u64,
    pub(crate) splits: u64,
    /// Copying of inputs and outputs, for each request the time of its batch: parts of the compute stage.
    pub(crate) input: Duration,
    pub(crate) output: Duration,
    pub(crate) stages: Stages,
    /// Batch sizes in ascending order.
    pub(crate) sizes: Vec<BatchSize>,
}

impl ModelMetrics {
    pub(crate) fn rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn expired(&self, count: usize) {
        self.expired.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn canceled(&self) {
        self.canceled.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self, count: usize) {
        self.failed.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// A batch ran in parts because it did not fit into the device's memory.
    pub(crate) fn split(&self) {
        self.splits.fetch_add(1, Ordering::Relaxed);
    }

    /// A batch of that many requests copied its inputs and outputs in these times.
    pub(crate) fn copied(&self, input: Duration, output: Duration, requests: usize) {
        for (sum, time) in [(&self.input_nanos, input), (&self.output_nanos, output)] {
            let nanos = u64::try_from(time.as_nanos()).unwrap_or(0).saturating_mul(requests as u64);
            sum.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    pub(crate) fn batch(&self, times: &BatchTimes<impl Iterator<Item = Time> + Clone>) {
        let RunTimes { dispatched, begun, ended } = times.run;
        let nanos = ended.0.saturating_sub(begun.0);
        let compute = Duration::from_nanos(nanos);
        let number = ended.0 / 1_000_000_000;
        let mut batches = lock(&self.batches);
        let batches = &mut *batches;
        batches.counts.batches += 1;
        batches.counts.rows += times.rows as u64;
        match batches.sizes.binary_search_by_key(&times.rows, |size| size.rows) {
            Ok(index) => {
                if let Some(size) = batches.sizes.get_mut(index) {
                    size.count += 1;
                    size.nanos += nanos;
                }
            }
            Err(index) => batches.sizes.insert(index, BatchSize { rows: times.rows, count: 1, nanos }),
        }
        let Some(second) = batches.recent.get_mut(usize::try_from(number).unwrap_or(0) % WINDOW) else {
            return;
        };
        if second.number != number {
            *second = SecondBucket { number, stages: Stages::default() };
        }
        for received in times.received.clone() {
            batches.counts.requests += 1;
            let (queue, total) = (since(received, dispatched), since(received, ended));
            for stages in [&mut batches.stages, &mut second.stages] {
                stages.queue.record(queue);
                stages.compute.record(compute);
                stages.total.record(total);
            }
        }
    }

    pub(crate) fn totals(&self) -> ModelTotals {
        let batches = lock(&self.batches);
        ModelTotals {
            counts: RequestCounts {
                rejected: self.rejected.load(Ordering::Relaxed),
                expired: self.expired.load(Ordering::Relaxed),
                canceled: self.canceled.load(Ordering::Relaxed),
                failed: self.failed.load(Ordering::Relaxed),
                ..batches.counts
            },
            restarts: self.restarts.load(Ordering::Relaxed),
            splits: self.splits.load(Ordering::Relaxed),
            input: Duration::from_nanos(self.input_nanos.load(Ordering::Relaxed)),
            output: Duration::from_nanos(self.output_nanos.load(Ordering::Relaxed)),
            stages: batches.stages.clone(),
            sizes: batches.sizes.clone(),
        }
    }

    /// Percentiles of the seconds before `now`.
    pub(crate) fn recent(&self, now: Time) -> Latencies {
        let number = now.0 / 1_000_000_000;
        let batches = lock(&self.batches);
        let mut sum = Stages::default();
        for second in &batches.recent {
            if second.number + WINDOW as u64 > number {
                sum.queue.add(&second.stages.queue);
                sum.compute.add(&second.stages.compute);
                sum.total.add(&second.stages.total);
            }
        }
        drop(batches);
        Latencies {
            queue: sum.queue.percentiles(),
            compute: sum.compute.percentiles(),
            total: sum.total.percentiles(),
        }
    }
}

fn since(earlier: Time, later: Time) -> Duration {
    Duration::from_nanos(later.0.saturating_sub(earlier.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time(milliseconds * 1_000_000)
    }

    #[test]
    fn a_batch_counts_once_and_each_of_its_requests_once() {
        let metrics = ModelMetrics::default();
        let received = [at(0), at(2)].into_iter();
        let run = RunTimes { dispatched: at(4), begun: at(4), ended: at(10) };
        metrics.batch(&BatchTimes { run, rows: 3, received });
        let ModelTotals { counts, sizes, .. } = metrics.totals();
        assert_eq!((counts.batches, counts.requests, counts.rows), (1, 2, 3));
        assert_eq!(sizes, [BatchSize { rows: 3, count: 1, nanos: 6_000_000 }]);
        let recent = metrics.recent(at(11));
        let (total, compute) = (recent.total.unwrap().p99, recent.compute.unwrap().p50);
        assert!((total - 10.0).abs() < 1.3, "{total}");
        assert!((compute - 6.0).abs() < 0.8, "{compute}");
        assert_eq!(metrics.recent(at(60_000)), Latencies::default(), "a minute ago is not recent");
    }
}
