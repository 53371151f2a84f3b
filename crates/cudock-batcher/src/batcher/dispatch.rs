//! What runs next, and whether it pays to wait.

use crate::number::{real, span, whole};
use crate::time::nanos;
use crate::{Batch, Next};

use super::{Batcher, Running};

/// A shared batch must save at least this share of its time before anybody waits for it: less cannot be told from
/// noise.
const WORTH: f64 = 1.0 / 16.0;
/// The share of what a shared batch saves that may be waited for while there are more clients than fit into it.
const CROWDED: f64 = 0.25;
/// Without better knowledge, the share of a batch's time before its end at which the next lane begins to fill.
const LEAD: f64 = 0.1;

/// Clients that are worth waiting for.
struct Wish {
    missing: usize,
    /// When hope is lost if none of them has come.
    until: u64,
    /// When they have cost as much as they bring.
    latest: u64,
}

impl Batcher {
    pub(super) fn decide(&mut self, now: u64) -> Next {
        if self.running.len() >= self.settings.lanes {
            return Next::Idle;
        }
        if self.running.iter().any(|running| running.alone)
            || (self.queue.has_alone() && !self.running.is_empty())
        {
            return if self.queue.requests() == 0 {
                Next::Idle
            } else {
                Next::WaitUntil(crate::Time(self.poll(now)))
            };
        }
        if let Some(entry) = self.queue.pop_alone() {
            let mut batch = self.open(entry.bucket_name);
            batch.rows = entry.rows;
            batch.tickets.push(entry.ticket);
            let mut arrivals = self.spare_arrivals.pop().unwrap_or_default();
            arrivals.push(entry.arrived);
            return Next::Run(self.start(now, batch, arrivals, true));
        }
        while let Some((bucket, name, rows)) = self.queue.first_bucket() {
            if let Some(until) = self.hold(now, rows).filter(|&until| until > now) {
                return Next::WaitUntil(crate::Time(until));
            }
            let mut batch = self.open(name);
            let mut arrivals = self.spare_arrivals.pop().unwrap_or_default();
            self.fill(now, bucket, rows, &mut batch, &mut arrivals);
            if !batch.tickets.is_empty() {
                return Next::Run(self.start(now, batch, arrivals, false));
            }
            self.recycle(batch.tickets);
            self.spare_arrivals.push(arrivals);
        }
        Next::Idle
    }

    /// Until when the rows of the bucket whose turn it is should wait; nothing if they should run.
    fn hold(&mut self, now: u64, rows: usize) -> Option<u64> {
        if rows >= self.full_rows() {
            return None;
        }
        let patience = self.waiting_since.saturating_add(nanos(self.settings.max_wait));
        if !self.running.is_empty() {
            return self.hold_while_busy(now, rows, patience);
        }
        if self.queue.buckets() > 1 {
            return None;
        }
        if !self.quiet && self.sharing_pays(rows) {
            if self.settings.shared_cores && now < patience {
                return Some(patience);
            }
            let settled = patience.min(self.waiting_since.saturating_add(nanos(self.settings.settle)));
            if self.rhythm.return_time().is_none() && now < settled {
                return Some(settled);
            }
        }
        self.hold_for_more(now, now, rows).map(|until| until.min(patience))
    }

    /// While the device works the next batch is collected, and filled just in time.
    fn hold_while_busy(&mut self, now: u64, rows: usize, patience: u64) -> Option<u64> {
        if self.settings.shared_cores {
            // Filling early would only slow the batch that runs.
            return Some(self.poll(now));
        }
        let Some(free) = self.device_free() else { return Some(patience) };
        let begin = free.saturating_sub(self.lead(rows));
        if now < begin { Some(begin) } else { self.hold_for_more(now, free, rows) }
    }

    /// Whether it could pay at all to add a row to so many.
    fn sharing_pays(&self, rows: usize) -> bool {
        self.saving(rows, 1).is_none_or(|saving| saving > 0.0)
    }

    /// When to ask again if nothing is to be expected before the running batch ends.
    fn poll(&self, now: u64) -> u64 {
        now.saturating_add(nanos(self.settings.max_wait).max(1_000_000))
    }

    /// Time that one batch of both takes less than two; nothing if it is not known or not worth speaking of.
    fn saving(&self, rows: usize, more: usize) -> Option<f64> {
        let together = self.time_of(rows + more)?;
        let saving = self.time_of(rows)? + self.time_of(more)? - together;
        Some(if saving > together * WORTH { saving } else { 0.0 })
    }

    /// Until when to wait for the clients that are not here, given that the device is free at `free`; nothing if they
    /// are not expected, if they cost more than they bring, or if those expected lately did not come.
    fn hold_for_more(&mut self, now: u64, free: u64, rows: usize) -> Option<u64> {
        let wish = self.wish(now, free, rows)?;
        self.rhythm.bet(now, wish.latest, wish.missing);
        self.rhythm.is_lucky().then_some(wish.until)
    }

    /// Those worth waiting for. All of them or none: if only some are waited for, there are two batches all the same,
    /// and the wait was for nothing. And what is gained once must be worth its price each time: clients that share a
    /// batch come back together, and the device is idle until they have. Where there are more clients than fit into a
    /// batch, those who come too late for this one would not run alone but with the rest; so they must come soon.
    fn wish(&self, now: u64, free: u64, rows: usize) -> Option<Wish> {
        let here = self.queue.requests().max(1);
        let clients = self.rhythm.clients();
        let away = clients.checked_sub(here).filter(|&away| away > 0)?;
        let each = (rows / here).max(1);
        let room = (self.full_rows() - rows).div_ceil(each);
        let missing = away.min(room);
        let saving = self.saving(rows, missing * each).filter(|&saving| saving > 0.0)?;
        let answer = if self.running.is_empty() { self.last_finish } else { free };
        let hope = self.rhythm.hope(answer, missing)?;
        let together = self.time_of(rows + missing * each)?;
        if hope.next <= now || span(hope.next.max(free)) + together > self.due() {
            return None;
        }
        let fit = (self.full_rows() / each).max(1);
        let all = clients.min(fit);
        let returning = all.saturating_sub(clients.saturating_sub(fit)).max(1);
        let each_time = self.rhythm.return_time()? + self.rhythm.gap().unwrap_or(0.0) * real(returning - 1);
        let unfilled = if self.settings.lanes > 1 { self.fill_time(all * each) } else { 0.0 };
        let this_time = hope.all - span(now.max(free));
        let since = if self.running.is_empty() { self.waiting_since } else { now.max(free) };
        let worth = if clients > fit { saving * CROWDED } else { saving };
        let latest = since.saturating_add(whole(worth));
        let until = hope.next.min(latest);
        (this_time.max(each_time) + unfilled <= worth).then_some(Wish { missing, until, latest })
    }

    /// When the first of those who wait must have its answer.
    fn due(&self) -> f64 {
        let deadline = self.queue.next_deadline().map_or(f64::INFINITY, span);
        let Some(target) = &self.target else { return deadline };
        let oldest = self.queue.first_bucket().and_then(|(bucket, _, _)| self.queue.peek(bucket));
        oldest.map_or(deadline, |(_, entry)| deadline.min(span(entry.arrived) + target.planned()))
    }

    fn fill_time(&self, rows: usize) -> f64 {
        self.filling.value().map_or(0.0, |row| row * real(self.padded(rows)))
    }

    /// How long before the device is free a lane must start to fill.
    fn lead(&self, rows: usize) -> u64 {
        let time = self.time_of(rows).unwrap_or(0.0);
        let lead = match self.filling.value() {
            Some(_) => self.fill_time(rows) * 1.25 + 20_000.0,
            None => (time * LEAD).clamp(20_000.0, 2_000_000.0),
        };
        whole(lead)
    }

    /// Rows to take of those queued.
    fn portion(&self, now: u64, bucket: u32, rows: usize) -> usize {
        let mut most = self.settings.max_rows;
        if let Some(target) = &self.target {
            let oldest = self.queue.peek(bucket).map_or(now, |(_, entry)| entry.arrived);
            let begins = self.device_free().filter(|_| !self.running.is_empty()).unwrap_or(now).max(now);
            // Whoever is left behind is late for certain, so the batch is cut only where it must be.
            let left = target.planned_at_start() - span(begins.saturating_sub(oldest));
            most = self.speed.rows_within(left.max(target.planned() / 2.0), most);
        }
        let take = rows.min(most);
        let preferred = &self.settings.preferred;
        let Some(&cut) =
            preferred.partition_point(|&size| size <= take).checked_sub(1).and_then(|at| preferred.get(at))
        else {
            return take;
        };
        let rest = take - cut;
        if rest == 0 {
            return take;
        }
        match (self.time_of(take), self.time_of(cut), self.time_of(rest)) {
            (Some(whole), Some(cut_time), Some(rest_time)) if whole <= cut_time + rest_time => take,
            (None, _, _) if self.settings.pad => take,
            _ => cut,
        }
    }

    /// Moves requests from the queue into a batch: in their order, as many as fit, without those that would be late.
    fn fill(&mut self, now: u64, bucket: u32, rows: usize, batch: &mut Batch, arrivals: &mut Vec<u64>) {
        let portion = self.portion(now, bucket, rows);
        let begins = self.device_free().filter(|_| !self.running.is_empty()).unwrap_or(now).max(now);
        let time = if self.is_fresh(now) { self.time_of(portion).unwrap_or(0.0) } else { 0.0 };
        let done = begins.saturating_add(whole(time));
        while let Some((number, entry)) = self.queue.peek(bucket) {
            let late = entry.deadline < done;
            let fits = batch.tickets.is_empty() || batch.rows.saturating_add(entry.rows) <= portion;
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
            arrivals.push(entry.arrived);
        }
        self.queue.settle(bucket);
    }

    fn open(&mut self, bucket: u64) -> Batch {
        let tickets = self.spare_tickets.pop().unwrap_or_default();
        Batch { id: 0, bucket, tickets, rows: 0, padded_rows: 0 }
    }

    fn start(&mut self, now: u64, mut batch: Batch, arrivals: Vec<u64>, alone: bool) -> Batch {
        self.batches += 1;
        batch.id = self.batches;
        batch.padded_rows = self.padded(batch.rows);
        self.running_requests += arrivals.len();
        self.running.push(Running {
            id: batch.id,
            padded_rows: batch.padded_rows,
            started: now,
            handed_over: now,
            expected: self.speed.estimate(batch.padded_rows),
            arrivals,
            alone,
        });
        batch
    }
}
