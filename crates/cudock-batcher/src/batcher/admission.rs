//! Who is let in.

use std::time::Duration;

use crate::number::{real, span, whole};
use crate::time::nanos;
use crate::{Arrival, Refusal};

use super::Batcher;

/// For how long at least what was learned is good enough to refuse somebody.
const FRESH: u64 = 1_000_000_000;

impl Batcher {
    /// Why a request cannot be taken, if so.
    pub(super) fn judge(&self, now: u64, arrival: &Arrival) -> Result<(), Refusal> {
        let settings = &self.settings;
        if settings.refuse_larger && arrival.rows > settings.max_rows {
            return Err(Refusal::TooManyRows { max: settings.max_rows });
        }
        if arrival.deadline.is_some_and(|deadline| deadline.0 <= now) {
            return Err(Refusal::Late);
        }
        // One that is larger than the whole queue may have it for itself.
        if self.queue.requests() > 0
            && (self.queue.rows().saturating_add(arrival.rows) > settings.queue_rows
                || self.queue.requests() >= settings.queue_rows
                || self.queue.bytes().saturating_add(arrival.bytes) > settings.queue_bytes)
        {
            return Err(self.full(now));
        }
        let idle = self.queue.requests() == 0 && self.running.is_empty();
        if idle && arrival.deadline.is_none() {
            return Ok(());
        }
        let before = self.queue.rows_before(arrival.priority);
        let Some(wait) = self.wait(now, before) else { return Ok(()) };
        if !idle && wait > span(nanos(settings.queue_time)) {
            return Err(self.full(now));
        }
        if let Some(deadline) = arrival.deadline
            && self.is_fresh(now)
            && self
                .own_time(before, arrival.rows)
                .is_some_and(|own| span(now) + wait + own > span(deadline.0))
        {
            return Err(Refusal::Late);
        }
        if !idle && !self.within_target(now, before, arrival.rows, wait) {
            return Err(self.full(now));
        }
        Ok(())
    }

    pub(super) fn full(&self, now: u64) -> Refusal {
        let drained = self.wait(now, self.queue.rows());
        let retry_after =
            drained.map_or(self.settings.queue_time, |nanos| Duration::from_nanos(whole(nanos)));
        Refusal::Full { retry_after: retry_after.max(Duration::from_millis(1)) }
    }

    /// How long the device is busy with what it has and with so many rows of the queue. Requests of different buckets
    /// cannot share, so there are at least as many batches as buckets.
    pub(super) fn wait(&self, now: u64, rows: usize) -> Option<f64> {
        let busy = self.busy_for(now)?;
        if rows == 0 {
            return Some(busy);
        }
        let batches = rows.div_ceil(self.full_rows()).max(self.queue.buckets().min(rows));
        Some(busy + real(batches) * self.time_of(rows.div_ceil(batches))?)
    }

    /// Whether what was learned is recent enough to refuse somebody for it. Otherwise the next request is let in and
    /// shows how things are now: a slow hour must not turn everybody away for ever.
    pub(super) fn is_fresh(&self, now: u64) -> bool {
        self.speed.learned_at().is_some_and(|learned| now.saturating_sub(learned) <= FRESH)
    }

    /// How long the device will be busy with what it has. What is overdue is expected to take as long again.
    fn busy_for(&self, now: u64) -> Option<f64> {
        if self.running.is_empty() {
            return Some(0.0);
        }
        let free = self.device_free().or_else(|| self.running.first().map(|running| running.started))?;
        Some(span(free.abs_diff(now)))
    }

    /// How long the batch takes that a request with so many rows before it would be in.
    fn own_time(&self, before: usize, rows: usize) -> Option<f64> {
        let full = self.full_rows();
        self.time_of((before % full).saturating_add(rows).min(full).max(rows))
    }

    /// Whether the request, and those it would share a batch with, can be answered in time. It counts on the company
    /// that is likely to come before its batch starts: one let in at the last moment at which it could be answered alone
    /// would keep all others out of its batch.
    fn within_target(&self, now: u64, before: usize, rows: usize, wait: f64) -> bool {
        let Some(target) = &self.target else { return true };
        let planned = target.planned();
        let company = self.rhythm.knocks_within(wait);
        let usual = target.usual_rows.min(self.full_rows());
        let crowded =
            |rows: usize| self.time_of(rows.saturating_add(company).min(usual).max(rows)).unwrap_or(0.0);
        let together = before.saturating_add(rows);
        let busy = self.busy_for(now).unwrap_or(0.0);
        let oldest = self.queue.first_bucket().and_then(|(bucket, _, _)| self.queue.peek(bucket));
        let age = oldest.map_or(0.0, |(_, entry)| span(now.saturating_sub(entry.arrived)));
        if together <= self.full_rows() && age + busy + crowded(together) <= planned {
            return true;
        }
        let own = if before < self.full_rows() { rows } else { before % self.full_rows() + rows };
        wait + crowded(own) <= planned
    }
}
