//! Decides what runs next, and whether waiting pays off.

use crate::convert::{f64_to_ns, ns_to_f64, to_f64};
use crate::time::nanos;
use crate::{Batch, LaneAction};

use super::{Batcher, Running};

/// Share of its time that a shared batch must save to be worth waiting for: less is within the noise.
const WORTH: f64 = 1.0 / 16.0;
/// Share of the saving that may be spent waiting while there are more clients than fit into a batch.
const CROWDED: f64 = 0.25;
/// Share of a batch's time before its end at which the next lane starts to fill, until fill times are known.
const LEAD: f64 = 0.1;

/// Clients that are worth waiting for, and how long.
struct WaitPlan {
    missing: usize,
    /// When to give up if none of them has arrived.
    until: u64,
    /// When the wait has cost as much as the shared batch saves.
    latest: u64,
}

impl Batcher {
    pub(super) fn decide(&mut self, now: u64) -> LaneAction {
        if self.running.len() >= self.settings.lanes {
            return LaneAction::Idle;
        }
        if self.running.iter().any(|running| running.isolated)
            || (self.queue.has_isolated() && !self.running.is_empty())
        {
            return if self.queue.requests() == 0 {
                LaneAction::Idle
            } else {
                LaneAction::WaitUntil(crate::Time(self.poll(now)))
            };
        }
        if let Some(entry) = self.queue.pop_isolated() {
            let mut batch = self.open(entry.bucket_hash);
            batch.rows = entry.rows;
            batch.tickets.push(entry.ticket);
            let mut admitted_at = self.spare_times.pop().unwrap_or_default();
            admitted_at.push(entry.arrived);
            return LaneAction::Run(self.start(now, batch, admitted_at, true));
        }
        while let Some((bucket, name, rows)) = self.queue.first_bucket() {
            if let Some(until) = self.hold(now, name, rows).filter(|&until| until > now) {
                return LaneAction::WaitUntil(crate::Time(until));
            }
            let mut batch = self.open(name);
            let mut admitted_at = self.spare_times.pop().unwrap_or_default();
            self.fill(now, bucket, rows, &mut batch, &mut admitted_at);
            if !batch.tickets.is_empty() {
                return LaneAction::Run(self.start(now, batch, admitted_at, false));
            }
            self.recycle(batch.tickets);
            self.spare_times.push(admitted_at);
        }
        LaneAction::Idle
    }

    /// Time until which the next bucket should wait; `None` if it should run now.
    fn hold(&mut self, now: u64, bucket: u64, rows: usize) -> Option<u64> {
        if rows >= self.full_rows(bucket) || self.most_requests(now).is_some() {
            return None;
        }
        let patience = self.waiting_since.saturating_add(nanos(self.settings.max_wait));
        if !self.running.is_empty() {
            return self.hold_while_busy(now, bucket, rows, patience);
        }
        if self.queue.buckets() > 1 {
            return None;
        }
        if !self.reads_drained && self.sharing_pays(rows) {
            if self.settings.shared_cores && now < patience {
                return Some(patience);
            }
            let settled = patience.min(self.waiting_since.saturating_add(nanos(self.settings.drain_timeout)));
            if self.arrivals.return_time().is_none() && now < settled {
                return Some(settled);
            }
        }
        self.hold_for_more(now, now, bucket, rows).map(|until| until.min(patience))
    }

    /// While the device is busy, the next batch is collected, and filled just in time.
    fn hold_while_busy(&mut self, now: u64, bucket: u64, rows: usize, patience: u64) -> Option<u64> {
        if self.settings.shared_cores {
            // Filling early would only slow the batch that runs.
            return Some(self.poll(now));
        }
        let Some(free) = self.device_free() else { return Some(patience) };
        let begin = free.saturating_sub(self.lead(rows));
        if now < begin { Some(begin) } else { self.hold_for_more(now, free, bucket, rows) }
    }

    /// Whether adding a row to `rows` could save time at all.
    fn sharing_pays(&self, rows: usize) -> bool {
        self.saving(rows, 1).is_none_or(|saving| saving > 0.0)
    }

    /// When to call again if nothing is expected before the running batch ends.
    fn poll(&self, now: u64) -> u64 {
        now.saturating_add(nanos(self.settings.max_wait).max(1_000_000))
    }

    /// Time that one shared batch takes less than two; `None` if unknown, 0 if it is within the noise.
    fn saving(&self, rows: usize, more: usize) -> Option<f64> {
        let together = self.time_of(rows + more)?;
        let saving = self.time_of(rows)? + self.time_of(more)? - together;
        Some(if saving > together * WORTH { saving } else { 0.0 })
    }

    /// Time until which to wait for missing clients, given that the device is free at `free`; `None` if they are not
    /// expected, if they cost more than they save, or if recent forecasts failed.
    fn hold_for_more(&mut self, now: u64, free: u64, bucket: u64, rows: usize) -> Option<u64> {
        let plan = self.plan_wait(now, free, bucket, rows)?;
        self.arrivals.predict(now, plan.latest, plan.missing);
        self.arrivals.is_reliable().then_some(plan.until)
    }

    /// Plans a wait for all missing clients or none: waiting for some of them only still makes two batches, and the
    /// wait is wasted. And a single gain must be worth its price every time: clients that share a batch come back
    /// together, and the device is idle until they have. If there are more clients than fit into a batch, those who
    /// miss this one would not run alone but with the rest; so they must arrive soon.
    fn plan_wait(&self, now: u64, free: u64, bucket: u64, rows: usize) -> Option<WaitPlan> {
        let full = self.full_rows(bucket);
        let here = self.queue.requests().max(1);
        let clients = self.arrivals.clients();
        let away = clients.checked_sub(here).filter(|&away| away > 0)?;
        let each = (rows / here).max(1);
        let room = full.saturating_sub(rows).div_ceil(each);
        let missing = away.min(room);
        let saving = self.saving(rows, missing * each).filter(|&saving| saving > 0.0)?;
        let response = if self.running.is_empty() { self.last_finish } else { free };
        let forecast = self.arrivals.forecast(response, missing)?;
        let together = self.time_of(rows + missing * each)?;
        if forecast.next <= now || ns_to_f64(forecast.next.max(free)) + together > self.due() {
            return None;
        }
        let fit = (full / each).max(1);
        let all = clients.min(fit);
        let returning = all.saturating_sub(clients.saturating_sub(fit)).max(1);
        let each_time =
            self.arrivals.return_time()? + self.arrivals.gap().unwrap_or(0.0) * to_f64(returning - 1);
        let unfilled = if self.settings.lanes > 1 { self.fill_time(all * each) } else { 0.0 };
        let this_time = forecast.all - ns_to_f64(now.max(free));
        let since = if self.running.is_empty() { self.waiting_since } else { now.max(free) };
        let worth = if clients > fit { saving * CROWDED } else { saving };
        let latest = since.saturating_add(f64_to_ns(worth));
        let until = forecast.next.min(latest);
        (this_time.max(each_time) + unfilled <= worth).then_some(WaitPlan { missing, until, latest })
    }

    /// When the first queued request must be finished.
    fn due(&self) -> f64 {
        let deadline = self.queue.next_deadline().map_or(f64::INFINITY, ns_to_f64);
        let Some(target) = &self.target else { return deadline };
        let oldest = self.queue.first_bucket().and_then(|(bucket, _, _)| self.queue.peek(bucket));
        oldest.map_or(deadline, |(_, entry)| deadline.min(ns_to_f64(entry.arrived) + target.planned()))
    }

    fn fill_time(&self, rows: usize) -> f64 {
        self.fill_time_per_row.value().map_or(0.0, |row| row * to_f64(self.padded(rows)))
    }

    /// How long before the device is free a lane must start to fill.
    fn lead(&self, rows: usize) -> u64 {
        let time = self.time_of(rows).unwrap_or(0.0);
        let lead = match self.fill_time_per_row.value() {
            Some(_) => self.fill_time(rows) * 1.25 + 20_000.0,
            None => (time * LEAD).clamp(20_000.0, 2_000_000.0),
        };
        f64_to_ns(lead)
    }

    /// When the device can start the next batch.
    fn next_start(&self, now: u64) -> u64 {
        self.device_free().filter(|_| !self.running.is_empty()).unwrap_or(now).max(now)
    }

    /// Number of rows to take from the bucket.
    fn portion(&self, now: u64, bucket: usize, bucket_hash: u64, rows: usize) -> usize {
        let mut most = self.max_rows(bucket_hash);
        if let Some(target) = &self.target {
            let oldest = self.queue.peek(bucket).map_or(now, |(_, entry)| entry.arrived);
            let begins = self.next_start(now);
            // Requests that are left behind will certainly be late, so the batch is cut only if it must be.
            let left = target.planned_at_start() - ns_to_f64(begins.saturating_sub(oldest));
            most = self.batch_time.rows_within(left.max(target.planned() / 2.0), most);
        }
        let take = rows.min(most);
        let Some(cut) = self.largest_preferred(take) else { return take };
        let rest = take - cut;
        if rest == 0 {
            return take;
        }
        match (self.time_of(take), self.time_of(cut), self.time_of(rest)) {
            (Some(time), Some(cut_time), Some(rest_time)) if time <= cut_time + rest_time => take,
            (None, _, _) if self.settings.pad => take,
            _ => cut,
        }
    }

    /// Moves requests from the queue into a batch: in order, as many as fit, without those that would be late.
    fn fill(&mut self, now: u64, bucket: usize, rows: usize, batch: &mut Batch, admitted_at: &mut Vec<u64>) {
        let portion = self.portion(now, bucket, batch.bucket, rows);
        let begins = self.next_start(now);
        let most = self.most_requests(now).unwrap_or(usize::MAX);
        let time = if self.is_fresh(now) { self.time_of(portion).unwrap_or(0.0) } else { 0.0 };
        let done = begins.saturating_add(f64_to_ns(time));
        while let Some((number, entry)) = self.queue.peek(bucket) {
            let late = entry.deadline < done;
            let fits = batch.tickets.is_empty()
                || (batch.rows.saturating_add(entry.rows) <= portion && batch.tickets.len() < most);
            if !late && !fits {
                break;
            }
            let Some(entry) = self.queue.pop(number) else { break };
            if late {
                self.expired.push(entry.ticket);
                continue;
            }
            batch.rows = batch.rows.saturating_add(entry.rows);
            batch.tickets.push(entry.ticket);
            admitted_at.push(entry.arrived);
        }
        self.queue.update_rank(bucket);
    }

    fn open(&mut self, bucket: u64) -> Batch {
        let tickets = self.spare_tickets.pop().unwrap_or_default();
        Batch { id: 0, bucket, tickets, rows: 0, padded_rows: 0 }
    }

    fn start(&mut self, now: u64, mut batch: Batch, admitted_at: Vec<u64>, isolated: bool) -> Batch {
        self.batches += 1;
        batch.id = self.batches;
        batch.padded_rows =
            self.padded_within(batch.rows, self.row_limit(batch.bucket).unwrap_or(usize::MAX));
        self.running_requests += admitted_at.len();
        self.running.push(Running {
            id: batch.id,
            padded_rows: batch.padded_rows,
            started: now,
            handed_over: now,
            expected: self.batch_time.estimate(batch.padded_rows),
            admitted_at,
            isolated,
        });
        batch
    }
}
