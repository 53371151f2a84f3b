//! Admission control.

use std::time::Duration;

use crate::convert::{f64_to_ns, ns_to_f64, to_f64};
use crate::time::nanos;
use crate::{AdmissionError, Arrival};

use super::Batcher;

/// Age up to which a measurement may be used to reject a request, in nanoseconds.
const FRESH: u64 = 1_000_000_000;

impl Batcher {
    pub(super) fn check_admission(&self, now: u64, arrival: &Arrival) -> Result<(), AdmissionError> {
        let settings = &self.settings;
        if arrival.deadline.is_some_and(|deadline| deadline.0 <= now) {
            return Err(AdmissionError::DeadlineUnreachable);
        }
        // A request that is larger than the whole queue may have it to itself.
        if self.queue.requests() > 0
            && (self.queue.rows.saturating_add(arrival.rows) > settings.max_queued_rows
                || self.queue.requests() >= settings.max_queued_rows
                || self.queue.bytes.saturating_add(arrival.bytes) > settings.max_queued_bytes)
        {
            return Err(self.queue_full(now, arrival.bucket));
        }
        let idle = self.queue.requests() == 0 && self.running.is_empty();
        if idle && arrival.deadline.is_none() {
            return Ok(());
        }
        let before = self.queue.rows_before(arrival.priority);
        let Some(wait) = self.queue_delay(now, arrival.bucket, before) else { return Ok(()) };
        if !idle && wait > ns_to_f64(nanos(settings.max_queue_time)) {
            return Err(self.queue_full(now, arrival.bucket));
        }
        if let Some(deadline) = arrival.deadline
            && self.is_fresh(now)
            && self
                .own_time(arrival.bucket, before, arrival.rows)
                .is_some_and(|own| ns_to_f64(now) + wait + own > ns_to_f64(deadline.0))
        {
            return Err(AdmissionError::DeadlineUnreachable);
        }
        if !idle && !self.within_target(now, arrival, before, wait) {
            return Err(self.queue_full(now, arrival.bucket));
        }
        Ok(())
    }

    pub(super) fn queue_full(&self, now: u64, bucket: u64) -> AdmissionError {
        let drained = self.queue_delay(now, bucket, self.queue.rows);
        let retry_after =
            drained.map_or(self.settings.max_queue_time, |nanos| Duration::from_nanos(f64_to_ns(nanos)));
        AdmissionError::QueueFull { retry_after: retry_after.max(Duration::from_millis(1)) }
    }

    /// Time until the device has run its batches and `rows` of the queue. Requests of different buckets cannot share,
    /// so there are at least as many batches as buckets. All are taken to be as large as those of `bucket` can be.
    pub(super) fn queue_delay(&self, now: u64, bucket: u64, rows: usize) -> Option<f64> {
        let busy = self.busy_for(now)?;
        if rows == 0 {
            return Some(busy);
        }
        let batches = rows.div_ceil(self.full_rows(bucket)).max(self.queue.buckets().min(rows));
        Some(busy + to_f64(batches) * self.time_of(rows.div_ceil(batches))?)
    }

    /// Whether the latest measurement is recent enough to reject requests for it. If not, the next request is admitted
    /// and measures again: a slow hour must not reject everything for good.
    pub(super) fn is_fresh(&self, now: u64) -> bool {
        self.batch_time.learned_at.is_some_and(|learned| now.saturating_sub(learned) <= FRESH)
    }

    /// Time until the device has run its batches. An overdue batch is expected to take as long again.
    fn busy_for(&self, now: u64) -> Option<f64> {
        if self.running.is_empty() {
            return Some(0.0);
        }
        let free = self.device_free().or_else(|| self.running.first().map(|running| running.started))?;
        Some(ns_to_f64(free.abs_diff(now)))
    }

    /// Time of the batch that a request with `before` rows ahead of it would be in.
    fn own_time(&self, bucket: u64, before: usize, rows: usize) -> Option<f64> {
        let full = self.full_rows(bucket);
        self.time_of((before % full).saturating_add(rows).min(full).max(rows))
    }

    /// Whether the request, and those it would share a batch with, can finish in time. It counts on the requests that
    /// are likely to arrive before its batch starts: a request admitted at the last moment at which it could finish
    /// alone would keep all others out of its batch.
    fn within_target(&self, now: u64, arrival: &Arrival, before: usize, wait: f64) -> bool {
        let Some(target) = &self.target else { return true };
        let (rows, full) = (arrival.rows, self.full_rows(arrival.bucket));
        let planned = target.planned();
        let joining = self.arrivals.offers_within(wait);
        let usual = target.usual_rows.min(full);
        let joined_time =
            |rows: usize| self.time_of(rows.saturating_add(joining).min(usual).max(rows)).unwrap_or(0.0);
        let together = before.saturating_add(rows);
        let busy = self.busy_for(now).unwrap_or(0.0);
        let oldest = self.queue.first_bucket().and_then(|(bucket, _, _)| self.queue.peek(bucket));
        let age = oldest.map_or(0.0, |(_, entry)| ns_to_f64(now.saturating_sub(entry.arrived)));
        if together <= full && age + busy + joined_time(together) <= planned {
            return true;
        }
        let own = if before < full { rows } else { before % full + rows };
        wait + joined_time(own) <= planned
    }
}
