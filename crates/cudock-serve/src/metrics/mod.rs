//! Counters for the status page, Prometheus and Triton's statistics.
//!
//! A lane reports a whole batch at once, under one short lock, so that counting does not slow down requests.

mod histogram;
mod prometheus;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cudock_base::lock;
use cudock_batcher::Time;

pub(crate) use histogram::{Histogram, Percentiles};
pub(crate) use prometheus::Exposition;

/// Length of the window of recent percentiles, in seconds.
const WINDOW: usize = 10;

/// Timestamps of a batch and of its requests.
pub(crate) struct BatchTimes<Received> {
    pub(crate) dispatched: Time,
    pub(crate) begun: Time,
    pub(crate) ended: Time,
    pub(crate) rows: usize,
    pub(crate) received: Received,
}

/// The counters of one model.
#[derive(Default)]
pub(crate) struct ModelMetrics {
    rejected: AtomicU64,
    expired: AtomicU64,
    canceled: AtomicU64,
    failed: AtomicU64,
    restarts: AtomicU64,
    batches: Mutex<Batches>,
}

/// Sizes and times of batches.
#[derive(Clone, Default)]
struct Batches {
    requests: u64,
    rows: u64,
    batches: u64,
    stages: Stages,
    sizes: Vec<(usize, u64, u64)>,
    recent: [SecondBucket; WINDOW],
}

/// Times of requests by stage.
#[derive(Clone, Default)]
pub(crate) struct Stages {
    /// From the request's first byte to the forming of its batch.
    pub(crate) queue: Histogram,
    /// The engine, copies included.
    pub(crate) compute: Histogram,
    /// From the request's first byte to the reply.
    pub(crate) total: Histogram,
}

#[derive(Clone, Default)]
struct SecondBucket {
    number: u64,
    stages: Stages,
}

/// Recent percentiles by stage.
pub(crate) struct RecentStages {
    pub(crate) queue: Percentiles,
    pub(crate) compute: Percentiles,
    pub(crate) total: Percentiles,
}

/// A snapshot of all counters.
#[derive(Clone, Default)]
pub(crate) struct ModelTotals {
    pub(crate) requests: u64,
    pub(crate) rows: u64,
    pub(crate) batches: u64,
    pub(crate) rejected: u64,
    pub(crate) expired: u64,
    pub(crate) canceled: u64,
    pub(crate) failed: u64,
    pub(crate) restarts: u64,
    pub(crate) stages: Stages,
    /// Rows, number of batches, nanoseconds of compute.
    pub(crate) sizes: Vec<(usize, u64, u64)>,
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

    /// Records a batch.
    pub(crate) fn batch(&self, times: &BatchTimes<impl Iterator<Item = Time> + Clone>) {
        let compute = since(times.begun, times.ended);
        let number = times.ended.0 / 1_000_000_000;
        let mut batches = lock(&self.batches);
        let batches = &mut *batches;
        batches.batches += 1;
        batches.rows += times.rows as u64;
        match batches.sizes.binary_search_by_key(&times.rows, |size| size.0) {
            Ok(index) => {
                if let Some((_, count, nanoseconds)) = batches.sizes.get_mut(index) {
                    *count += 1;
                    *nanoseconds += nanoseconds_of(compute);
                }
            }
            Err(index) => batches.sizes.insert(index, (times.rows, 1, nanoseconds_of(compute))),
        }
        let Some(second) = batches.recent.get_mut(usize::try_from(number).unwrap_or(0) % WINDOW) else {
            return;
        };
        if second.number != number {
            *second = SecondBucket { number, stages: Stages::default() };
        }
        for received in times.received.clone() {
            batches.requests += 1;
            let (queue, total) = (since(received, times.dispatched), since(received, times.ended));
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
            requests: batches.requests,
            rows: batches.rows,
            batches: batches.batches,
            rejected: self.rejected.load(Ordering::Relaxed),
            expired: self.expired.load(Ordering::Relaxed),
            canceled: self.canceled.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            restarts: self.restarts.load(Ordering::Relaxed),
            stages: batches.stages.clone(),
            sizes: batches.sizes.clone(),
        }
    }

    /// Percentiles of the seconds before `now`.
    pub(crate) fn recent(&self, now: Time) -> RecentStages {
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
        RecentStages {
            queue: sum.queue.percentiles(),
            compute: sum.compute.percentiles(),
            total: sum.total.percentiles(),
        }
    }
}

fn since(earlier: Time, later: Time) -> Duration {
    Duration::from_nanos(later.0.saturating_sub(earlier.0))
}

fn nanoseconds_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
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
        let received = [at(0), at(2)];
        metrics.batch(&BatchTimes {
            dispatched: at(4),
            begun: at(4),
            ended: at(10),
            rows: 3,
            received: received.iter().copied(),
        });
        let totals = metrics.totals();
        assert_eq!((totals.batches, totals.requests, totals.rows), (1, 2, 3));
        assert_eq!(totals.sizes, [(3, 1, 6_000_000)]);
        let recent = metrics.recent(at(11));
        assert!((recent.total.p99 - 10.0).abs() < 1.3, "{}", recent.total.p99);
        assert!((recent.compute.p50 - 6.0).abs() < 0.8, "{}", recent.compute.p50);
    }

    #[test]
    fn old_batches_are_not_recent() {
        let metrics = ModelMetrics::default();
        let received = [at(0)];
        metrics.batch(&BatchTimes {
            dispatched: at(1),
            begun: at(1),
            ended: at(2),
            rows: 1,
            received: received.iter().copied(),
        });
        assert!(metrics.recent(at(60_000)).total.p50.abs() < f64::EPSILON);
        assert_eq!(metrics.totals().requests, 1);
    }
}
