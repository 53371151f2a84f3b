//! The state machine: its events and decisions.

mod admission;
mod dispatch;
mod latency_target;

use std::time::Duration;

use crate::arrivals::ArrivalModel;
use crate::batch_time::BatchTimeModel;
use crate::convert::{f64_to_ns, ns_to_f64, to_f64};
use crate::hash::U64Map;
use crate::moving_average::MovingAverage;
use crate::queue::Queue;
use crate::time::nanos;
use crate::{AdmissionError, Arrival, BatcherSettings, LaneAction, Ticket, Time};

use latency_target::LatencyTarget;

/// Maximum number of buckets with a limit of their own. Batches of other buckets run into theirs again.
const MAX_ROW_LIMITS: usize = 1024;

/// Time after which the number of requests in a batch may double again.
const CAREFUL_STEP: u64 = 2_000_000_000;

/// Smallest delay of the arrival that a priority level counts as, in nanoseconds.
const MIN_AGING: u64 = 10_000_000;

/// Decides which requests run together, and when.
///
/// The caller admits requests, calls [`next_action`](Self::next_action) whenever a lane is free and something has
/// changed, and reports finished batches with [`on_finished`](Self::on_finished). Every admitted ticket comes out
/// exactly once: in a batch, from [`take_expired`](Self::take_expired), or from [`cancel`](Self::cancel).
///
/// ```
/// use cudock_batcher::{Arrival, Batcher, BatcherSettings, LaneAction, Ticket, Time};
///
/// let mut batcher = Batcher::new(BatcherSettings::default());
/// for ticket in 0..3 {
///     let arrival = Arrival { ticket: Ticket(ticket), rows: 1, bucket: 0, bytes: 64, priority: 0, deadline: None };
///     batcher.admit(Time(0), arrival).unwrap();
/// }
/// batcher.on_reads_drained(Time(1));
/// let LaneAction::Run(batch) = batcher.next_action(Time(1)) else { unreachable!("the device is idle") };
/// assert_eq!(batch.rows, 3);
/// batcher.on_finished(Time(500_000), batch.id, true);
/// assert_eq!(batcher.next_action(Time(500_000)), LaneAction::Idle);
/// ```
#[derive(Debug)]
pub struct Batcher {
    settings: BatcherSettings,
    queue: Queue,
    batch_time: BatchTimeModel,
    arrivals: ArrivalModel,
    target: Option<LatencyTarget>,
    fill_time_per_row: MovingAverage,
    /// Rows that fit into the device's memory by bucket, where a batch did not.
    row_limits: U64Map<usize>,
    running: Vec<Running>,
    running_requests: usize,
    batches: u64,
    /// Since when batches have few requests.
    careful_since: Option<u64>,
    clock: u64,
    /// When the device last finished a batch.
    last_finish: u64,
    /// Since when a request has been waiting for an idle device.
    waiting_since: u64,
    reads_drained: bool,
    expired: Vec<Ticket>,
    spare_tickets: Vec<Vec<Ticket>>,
    spare_times: Vec<Vec<u64>>,
}

#[derive(Debug)]
struct Running {
    id: u64,
    padded_rows: usize,
    started: u64,
    /// Earliest time at which the device can have started it.
    handed_over: u64,
    /// Its estimated time when it started.
    expected: Option<f64>,
    admitted_at: Vec<u64>,
    /// Whether no other batch may run at the same time.
    isolated: bool,
}

impl Batcher {
    /// Creates a batcher that has learned nothing yet. Invalid settings are corrected: sizes and lanes are at least
    /// one, and preferred row counts are sorted.
    pub fn new(mut settings: BatcherSettings) -> Self {
        settings.max_rows = settings.max_rows.max(1);
        settings.lanes = settings.lanes.max(1);
        settings.preferred_rows.retain(|&rows| rows > 0 && rows <= settings.max_rows);
        settings.preferred_rows.sort_unstable();
        settings.preferred_rows.dedup();
        Self {
            queue: Queue::new(nanos(settings.max_queue_time).max(MIN_AGING)),
            batch_time: BatchTimeModel::new(&settings.preferred_rows),
            arrivals: ArrivalModel::default(),
            target: settings.latency_target.map(|target| LatencyTarget::new(nanos(target))),
            fill_time_per_row: MovingAverage::default(),
            row_limits: U64Map::default(),
            running: Vec::with_capacity(settings.lanes),
            running_requests: 0,
            batches: 0,
            careful_since: None,
            clock: 0,
            last_finish: 0,
            waiting_since: 0,
            reads_drained: false,
            expired: Vec::new(),
            spare_tickets: Vec::new(),
            spare_times: Vec::new(),
            settings,
        }
    }

    pub fn admit(&mut self, now: Time, arrival: Arrival) -> Result<(), AdmissionError> {
        let now = self.tick(now);
        self.arrivals.on_offered(now);
        self.check_admission(now, &arrival)?;
        if self.queue.requests() == 0 {
            self.waiting_since = now;
        }
        self.queue.push(now, &arrival);
        self.arrivals.on_admitted(now, self.in_flight());
        self.reads_drained = false;
        Ok(())
    }

    /// Removes a request whose client has disconnected. Returns whether it was still queued; if not, it is running,
    /// unknown, or comes out of [`Self::take_expired`].
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        self.queue.remove(ticket).is_some()
    }

    /// Reports that the transport has written all responses and read everything that is available. With several threads
    /// that read, this is when none of them has anything left to do. A caller that never reports it pays with a wait of
    /// [`BatcherSettings::drain_timeout`] before the first batches, and of [`BatcherSettings::max_wait`] before each
    /// one if cores are shared.
    pub fn on_reads_drained(&mut self, now: Time) {
        self.tick(now);
        self.reads_drained = true;
    }

    /// The next action of a free lane. Call it again after a request was admitted, a batch finished
    /// or the reads were drained.
    pub fn next_action(&mut self, now: Time) -> LaneAction {
        let now = self.tick(now);
        self.expire(now);
        self.decide(now)
    }

    /// Moves out the requests that will not run because their deadline has passed, or will pass before they could
    /// finish. Call it with every [`Self::next_action`].
    pub fn take_expired(&mut self, now: Time, out: &mut Vec<Ticket>) {
        let now = self.tick(now);
        self.expire(now);
        out.append(&mut self.expired);
    }

    /// Reports that the lane has copied the batch into the engine's buffers. Optional: the batcher learns from it how
    /// long before the end of a batch the next lane must start to fill.
    pub fn on_filled(&mut self, now: Time, batch: u64) {
        let now = self.tick(now);
        if let Some(running) = self.running.iter_mut().find(|running| running.id == batch) {
            self.fill_time_per_row
                .learn(ns_to_f64(now.saturating_sub(running.started)) / to_f64(running.padded_rows.max(1)));
            // With one lane the fill time is part of the batch time; with more it is hidden behind the running batch.
            if self.settings.lanes > 1 {
                running.handed_over = now;
            }
        }
    }

    /// Reports that a batch finished; `ok` if its time is representative. An unknown batch is ignored, so that an
    /// engine that was abandoned may still report.
    pub fn on_finished(&mut self, now: Time, batch: u64, ok: bool) {
        let now = self.tick(now);
        let Some(index) = self.running.iter().position(|running| running.id == batch) else { return };
        let mut running = self.running.remove(index);
        self.running_requests = self.running_requests.saturating_sub(running.admitted_at.len());
        if ok {
            let began = running.handed_over.max(self.last_finish);
            self.batch_time.learn(now, running.padded_rows, now.saturating_sub(began));
            if let Some(target) = &mut self.target {
                let planned_since = self.batch_time.known_since.unwrap_or(now);
                target.record_responses(now, &running.admitted_at, planned_since);
                target.usual_rows =
                    self.batch_time.rows_within(target.planned() / 2.0, self.settings.max_rows);
            }
        }
        self.last_finish = now;
        if self.running.is_empty() {
            self.waiting_since = self.waiting_since.max(now);
        }
        self.arrivals.on_responded(now, self.in_flight());
        self.reads_drained = false;
        running.admitted_at.clear();
        self.spare_times.push(running.admitted_at);
    }

    /// Queues a request again whose batch failed, after that was reported as finished. It goes to the front regardless
    /// of the queue's limits, and runs isolated, in a batch of its own with no other batch at the same time: so a request
    /// that kills the engine does no harm to others.
    pub fn retry_alone(&mut self, now: Time, arrival: Arrival) {
        let now = self.tick(now);
        self.queue.push_isolated(now, &arrival);
    }

    /// The same for a request that runs with others of its bucket, in the order in which they had arrived.
    pub fn retry_together(&mut self, arrived: Time, arrival: Arrival) {
        self.queue.push(arrived.0, &arrival);
    }

    /// Limits batches to one request each, because any may crash the engine and take the others with it. The limit doubles
    /// with every two seconds without another call.
    pub fn be_careful(&mut self, now: Time) {
        self.careful_since = Some(self.tick(now));
    }

    /// Records a batch time that was measured elsewhere, while a model was warmed up.
    pub fn record_batch_time(&mut self, now: Time, rows: usize, took: Duration) {
        let now = self.tick(now);
        self.batch_time.learn(now, self.padded(rows), nanos(took));
    }

    /// Limits the rows of batches of a bucket from now on, because more do not fit into the device's memory. A limit is
    /// never raised. Returns whether it is lower than before.
    pub fn limit_rows(&mut self, bucket: u64, rows: usize) -> bool {
        let rows = rows.max(1);
        let is_lower = match self.row_limit(bucket) {
            Some(known) => rows < known,
            None => self.row_limits.len() < MAX_ROW_LIMITS,
        };
        if is_lower {
            self.row_limits.insert(bucket, rows);
        }
        is_lower
    }

    /// The rows of a bucket that fit into the device's memory, if that is known. They may be more than the settings allow,
    /// which a single request may exceed.
    pub fn row_limit(&self, bucket: u64) -> Option<usize> {
        self.row_limits.get(&bucket).copied()
    }

    /// The lowest of these limits.
    pub fn lowest_row_limit(&self) -> Option<usize> {
        self.row_limits.values().copied().min()
    }

    /// Rows of the parts in which to run a batch of `rows` that does not fit: a preferred row count up to half of it, or
    /// half of it.
    pub fn part_rows(&self, rows: usize) -> usize {
        let half = (rows / 2).max(1);
        self.largest_preferred(half).unwrap_or(half)
    }

    /// Rows that the engine runs for a part of `rows` if at most `most` fit.
    pub fn padded_within(&self, rows: usize, most: usize) -> usize {
        Some(self.padded(rows)).filter(|padded| *padded <= most).unwrap_or(rows)
    }

    /// Takes back the ticket list of a finished batch for reuse.
    pub fn recycle(&mut self, mut tickets: Vec<Ticket>) {
        if self.spare_tickets.len() < self.settings.lanes + 1 {
            tickets.clear();
            self.spare_tickets.push(tickets);
        }
    }

    pub fn queued_rows(&self) -> usize {
        self.queue.rows
    }

    pub fn queued_requests(&self) -> usize {
        self.queue.requests()
    }

    pub fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Estimated time of a batch of `rows` rows, padding included; `None` before the first measurement.
    pub fn estimate(&self, rows: usize) -> Option<Duration> {
        self.time_of(rows).map(|nanos| Duration::from_nanos(f64_to_ns(nanos)))
    }

    fn tick(&mut self, now: Time) -> u64 {
        self.clock = self.clock.max(now.0);
        self.clock
    }

    /// Number of queued and running requests.
    fn in_flight(&self) -> usize {
        self.queue.requests() + self.running_requests
    }

    fn expire(&mut self, now: u64) {
        while let Some(entry) = self.queue.pop_expired(now) {
            self.expired.push(entry.ticket);
        }
    }

    /// Rows that the engine runs for a batch of `rows`.
    fn padded(&self, rows: usize) -> usize {
        if !self.settings.pad {
            return rows;
        }
        let index = self.settings.preferred_rows.partition_point(|&size| size < rows);
        self.settings.preferred_rows.get(index).copied().unwrap_or(rows)
    }

    fn time_of(&self, rows: usize) -> Option<f64> {
        self.batch_time.estimate(self.padded(rows))
    }

    /// Maximum number of rows of a batch of the bucket.
    fn max_rows(&self, bucket: u64) -> usize {
        self.row_limit(bucket).map_or(self.settings.max_rows, |limit| limit.min(self.settings.max_rows))
    }

    fn largest_preferred(&self, most: usize) -> Option<usize> {
        let preferred_rows = &self.settings.preferred_rows;
        let count = preferred_rows.partition_point(|&size| size <= most);
        preferred_rows.get(count.checked_sub(1)?).copied()
    }

    /// Maximum number of requests of a batch, if they are limited.
    fn most_requests(&self, now: u64) -> Option<usize> {
        let steps = now.saturating_sub(self.careful_since?) / CAREFUL_STEP;
        1_usize.checked_shl(u32::try_from(steps).ok()?).filter(|most| *most < self.settings.max_rows)
    }

    /// Row count at which a batch of the bucket is full and does not wait.
    fn full_rows(&self, bucket: u64) -> usize {
        let most = self.max_rows(bucket);
        self.largest_preferred(most).unwrap_or(most)
    }

    /// When the device will have finished all its batches, as estimated. It may lie in the past.
    fn device_free(&self) -> Option<u64> {
        self.running.iter().try_fold(self.last_finish, |free, running| {
            Some(free.max(running.handed_over).saturating_add(f64_to_ns(running.expected?)))
        })
    }
}
