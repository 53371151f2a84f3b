//! The state machine: what happens to it, and what it answers.

mod admission;
mod dispatch;
mod target;

use std::time::Duration;

use crate::average::Average;
use crate::number::{real, span, whole};
use crate::queue::Queue;
use crate::rhythm::Rhythm;
use crate::snapshot::{LearnedSize, Snapshot};
use crate::speed::Speed;
use crate::time::nanos;
use crate::{Arrival, Next, Refusal, Settings, Ticket, Time};

use target::Target;

/// A level of priority counts as at least so much later an arrival.
const LEAST_AGEING: u64 = 10_000_000;

/// Decides which requests run together and when.
///
/// The caller admits requests, asks [`next`](Self::next) whenever a lane is free and something has changed, and reports
/// batches as [`finished`](Self::finished). Every admitted ticket comes out once: in a batch, from
/// [`take_expired`](Self::take_expired), or by [`cancel`](Self::cancel).
///
/// ```
/// use cudock_batcher::{Arrival, Batcher, Next, Settings, Ticket, Time};
///
/// let mut batcher = Batcher::new(Settings::default());
/// for ticket in 0..3 {
///     let arrival = Arrival { ticket: Ticket(ticket), rows: 1, bucket: 0, bytes: 64, priority: 0, deadline: None };
///     batcher.admit(Time::ZERO, arrival).unwrap();
/// }
/// batcher.quiet(Time(1));
/// let Next::Run(batch) = batcher.next(Time(1)) else { unreachable!("the device is idle and nobody else is coming") };
/// assert_eq!(batch.rows, 3);
/// batcher.finished(Time(500_000), batch.id, true);
/// assert_eq!(batcher.next(Time(500_000)), Next::Idle);
/// ```
#[derive(Debug)]
pub struct Batcher {
    settings: Settings,
    queue: Queue,
    speed: Speed,
    rhythm: Rhythm,
    target: Option<Target>,
    /// Time to fill a lane's buffers, for each row.
    filling: Average,
    running: Vec<Running>,
    running_requests: usize,
    batches: u64,
    /// The latest time seen.
    clock: u64,
    /// When the device last finished something.
    last_finish: u64,
    /// Since when a request has been waiting for an idle device.
    waiting_since: u64,
    quiet: bool,
    expired: Vec<Ticket>,
    spare_tickets: Vec<Vec<Ticket>>,
    spare_arrivals: Vec<Vec<u64>>,
}

/// A batch that is with the engine.
#[derive(Debug)]
struct Running {
    id: u64,
    padded_rows: usize,
    started: u64,
    /// Since when the device can have been working on it.
    handed_over: u64,
    /// How long it was thought to take.
    expected: Option<f64>,
    /// When its requests were admitted.
    arrivals: Vec<u64>,
    /// Whether nothing else may run beside it.
    alone: bool,
}

impl Batcher {
    /// A batcher that has learned nothing yet. Settings that make no sense are mended: no size or number of lanes is
    /// less than one, and preferred sizes are put in order.
    pub fn new(mut settings: Settings) -> Self {
        settings.max_rows = settings.max_rows.max(1);
        settings.lanes = settings.lanes.max(1);
        settings.preferred.retain(|&rows| rows > 0 && rows <= settings.max_rows);
        settings.preferred.sort_unstable();
        settings.preferred.dedup();
        Self {
            queue: Queue::new(nanos(settings.queue_time).max(LEAST_AGEING)),
            speed: Speed::new(&settings.preferred),
            rhythm: Rhythm::default(),
            target: settings.latency_target.map(|target| Target::new(nanos(target))),
            filling: Average::default(),
            running: Vec::with_capacity(settings.lanes),
            running_requests: 0,
            batches: 0,
            clock: 0,
            last_finish: 0,
            waiting_since: 0,
            quiet: false,
            expired: Vec::new(),
            spare_tickets: Vec::new(),
            spare_arrivals: Vec::new(),
            settings,
        }
    }

    /// Lets a request wait for its batch, or says why not.
    pub fn admit(&mut self, now: Time, arrival: Arrival) -> Result<(), Refusal> {
        let now = self.tick(now);
        self.rhythm.knocked(now);
        self.judge(now, &arrival)?;
        if self.queue.requests() == 0 {
            self.waiting_since = now;
        }
        if !self.queue.push(now, &arrival) {
            return Err(self.full(now));
        }
        self.rhythm.arrived(now, self.present());
        self.quiet = false;
        Ok(())
    }

    /// Takes back a request whose client has left. True: it was queued still, and is gone. False: it is running, or was
    /// never there, or comes out of [`Self::take_expired`].
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        self.queue.remove(ticket).is_some()
    }

    /// The transport has written the answers it was given and read all there is at this moment. With several threads
    /// that read, this is when none of them has any more to do. A caller that never says so pays with a wait of
    /// [`Settings::settle`] before the first batches, and of [`Settings::max_wait`] before each where cores are shared.
    pub fn quiet(&mut self, now: Time) {
        self.tick(now);
        self.quiet = true;
    }

    /// What a free lane is to do. To be asked again after anything was admitted, finished or reported quiet.
    pub fn next(&mut self, now: Time) -> Next {
        let now = self.tick(now);
        self.expire(now);
        self.decide(now)
    }

    /// The requests that are not going to be run because their deadline has passed, or will have before they are done.
    /// To be asked after [`Self::next`] and at [`Self::next_deadline`].
    pub fn take_expired(&mut self, now: Time, out: &mut Vec<Ticket>) {
        let now = self.tick(now);
        self.expire(now);
        out.append(&mut self.expired);
    }

    /// When [`Self::take_expired`] will have something, if nothing else happens.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.expired.is_empty() { self.queue.next_deadline().map(Time) } else { Some(Time(self.clock)) }
    }

    /// The lane has copied the batch to where the engine reads it. Optional: teaches how long before the end of a batch
    /// the next lane must start to fill.
    pub fn filled(&mut self, now: Time, batch: u64) {
        let now = self.tick(now);
        if let Some(running) = self.running.iter_mut().find(|running| running.id == batch) {
            self.filling.learn(span(now.saturating_sub(running.started)) / real(running.padded_rows.max(1)));
            // With one lane the time to fill is part of what a batch takes; with more it can be hidden.
            if self.settings.lanes > 1 {
                running.handed_over = now;
            }
        }
    }

    /// A batch came to its end; `ok` if its time tells how long such a batch takes. A batch that is not known is
    /// passed over, so that an engine that was given up on may still report.
    pub fn finished(&mut self, now: Time, batch: u64, ok: bool) {
        let now = self.tick(now);
        let Some(place) = self.running.iter().position(|running| running.id == batch) else { return };
        let mut running = self.running.remove(place);
        self.running_requests = self.running_requests.saturating_sub(running.arrivals.len());
        if ok {
            let began = running.handed_over.max(self.last_finish);
            self.speed.learn(now, running.padded_rows, now.saturating_sub(began));
            if let Some(target) = &mut self.target {
                target.answered(now, &running.arrivals, self.speed.known_since().unwrap_or(now));
                target.usual_rows = self.speed.rows_within(target.planned() / 2.0, self.settings.max_rows);
            }
        }
        self.last_finish = now;
        if self.running.is_empty() {
            self.waiting_since = self.waiting_since.max(now);
        }
        self.rhythm.answered(now, self.present());
        self.quiet = false;
        running.arrivals.clear();
        self.spare_arrivals.push(running.arrivals);
    }

    /// Takes requests back whose engine died under them, after their batch was reported as finished. They go to the
    /// front whatever the queue's bounds, and each runs in a batch of its own with nothing beside it: so the one that
    /// is to blame takes nobody with it.
    pub fn retry(&mut self, now: Time, requests: impl IntoIterator<Item = Arrival>) {
        let now = self.tick(now);
        for arrival in requests {
            self.queue.push_alone(now, &arrival);
        }
    }

    /// A batch of so many rows was seen to take so long, outside of this batcher: while a model was warmed up.
    pub fn teach(&mut self, now: Time, rows: usize, took: Duration) {
        let now = self.tick(now);
        self.speed.learn(now, self.padded(rows), nanos(took));
    }

    /// Gives back the list of a batch that is done with, to be used for another.
    pub fn recycle(&mut self, mut tickets: Vec<Ticket>) {
        if self.spare_tickets.len() < self.settings.lanes + 1 {
            tickets.clear();
            self.spare_tickets.push(tickets);
        }
    }

    /// Rows that wait.
    pub fn queued_rows(&self) -> usize {
        self.queue.rows()
    }

    /// Requests that wait.
    pub fn queued_requests(&self) -> usize {
        self.queue.requests()
    }

    /// Bytes of the requests that wait.
    pub fn queued_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Batches that are with the engine.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// How long a batch of so many rows takes, padding included; nothing before the first one.
    pub fn estimate(&self, rows: usize) -> Option<Duration> {
        self.time_of(rows).map(|nanos| Duration::from_nanos(whole(nanos)))
    }

    /// How long a request that is admitted now would wait before it runs; nothing before the first batch was run.
    pub fn expected_wait(&self, now: Time) -> Option<Duration> {
        self.wait(self.clock.max(now.0), self.queue.rows()).map(|nanos| Duration::from_nanos(whole(nanos)))
    }

    /// Most rows of a batch that keep a request within the latency target, if it is run without delay; the largest
    /// batch where there is no target.
    pub fn max_rows_within_target(&self) -> usize {
        let most = self.settings.max_rows;
        self.target.as_ref().map_or(most, |target| self.speed.rows_within(target.planned(), most))
    }

    /// What was learned, for metrics.
    pub fn learned(&self) -> Snapshot {
        let duration = |nanos: f64| Duration::from_nanos(whole(nanos));
        let sizes = self.speed.curve().iter();
        Snapshot {
            sizes: sizes
                .map(|knot| LearnedSize {
                    rows: knot.rows,
                    time: duration(knot.nanos),
                    batches: knot.samples,
                })
                .collect(),
            gap: self.rhythm.gap().map(duration),
            return_time: self.rhythm.return_time().map(duration),
            fill_time: self.filling.value().map(|row| duration(row * real(self.full_rows()))),
            clients: self.rhythm.clients(),
            planned_share: self.target.as_ref().map_or(1.0, Target::share),
        }
    }

    fn tick(&mut self, now: Time) -> u64 {
        self.clock = self.clock.max(now.0);
        self.clock
    }

    /// Requests in the server.
    fn present(&self) -> usize {
        self.queue.requests() + self.running_requests
    }

    fn expire(&mut self, now: u64) {
        while let Some(entry) = self.queue.pop_expired(now) {
            self.expired.push(entry.ticket);
        }
    }

    /// Rows the engine runs for so many.
    fn padded(&self, rows: usize) -> usize {
        if !self.settings.pad {
            return rows;
        }
        let place = self.settings.preferred.partition_point(|&size| size < rows);
        self.settings.preferred.get(place).copied().unwrap_or(rows)
    }

    fn time_of(&self, rows: usize) -> Option<f64> {
        self.speed.estimate(self.padded(rows))
    }

    /// Rows beyond which nothing is waited for.
    fn full_rows(&self) -> usize {
        self.settings.preferred.last().copied().unwrap_or(self.settings.max_rows)
    }

    /// When the device will have done all it was given, going by what was expected. It may lie in the past.
    fn device_free(&self) -> Option<u64> {
        self.running.iter().try_fold(self.last_finish, |free, running| {
            Some(free.max(running.handed_over).saturating_add(whole(running.expected?)))
        })
    }
}
