//! Requests that wait for a lane, and the lanes that wait for requests.
//!
//! Which requests run together is the batcher's decision; this is the lock around it, the requests behind its
//! tickets, and the sleeping and waking of lanes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudock_batcher::{AdmissionError, Arrival, Batcher, BatcherSettings, LaneAction, Ticket, Time};
use cudock_tensor::{Answer, Tensor};

use crate::ServeError;
use crate::metrics::ModelMetrics;
use crate::reply::{self, Outcome, Post, Receiver, Sender, lock};

/// Nanoseconds for which one refusal stands for others.
const A_MOMENT: u64 = 1_000_000;

/// The requests of one model.
pub(crate) struct Queue {
    state: Mutex<State>,
    lanes: Condvar,
    start: Instant,
    /// Rows that fill a batch.
    full_at: usize,
    /// Requests handed in so far; tells whether a thread still had something to read.
    submitted: AtomicU64,
    /// Milliseconds after which the last refused request may try again; zero once a batch has made room.
    crowded: AtomicU64,
    /// When that was.
    crowded_at: AtomicU64,
    pub(crate) metrics: ModelMetrics,
}

struct State {
    batcher: Batcher,
    slots: Vec<Slot>,
    free: Vec<u32>,
    sleeping: usize,
    closed: bool,
    /// Engines whose lanes may take work, and the number the next engine gets.
    engines: Vec<u64>,
    next_engine: u64,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    request: Option<Waiting>,
}

/// A request that waits, or that a lane is running.
pub(crate) struct Waiting {
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) rows: usize,
    pub(crate) bucket: u64,
    pub(crate) priority: u32,
    pub(crate) deadline: Option<Time>,
    pub(crate) received: Time,
    /// Whether an engine has already failed on a batch with this request in it.
    pub(crate) suspect: bool,
    pub(crate) sender: Sender,
}

impl Waiting {
    pub(crate) fn bytes(&self) -> usize {
        self.inputs.iter().map(|tensor| tensor.data().len()).sum()
    }

    fn arrival(&self, ticket: Ticket) -> Arrival {
        Arrival {
            ticket,
            rows: self.rows,
            bucket: self.bucket,
            bytes: self.bytes(),
            priority: self.priority,
            deadline: self.deadline,
        }
    }
}

/// Requests that run together.
pub(crate) struct Work {
    pub(crate) id: u64,
    pub(crate) requests: Vec<Waiting>,
    pub(crate) rows: usize,
    pub(crate) padded_rows: usize,
    pub(crate) dispatched: Time,
    /// What the batcher expects it to take, where it has seen such batches.
    pub(crate) expected: Option<Duration>,
}

/// Why a request was not taken.
pub(crate) enum NotTaken {
    /// This queue takes no more: the model was replaced, or the server ends. The request is given back.
    Closed(Waiting),
    /// The client must be told so.
    Refused(ServeError),
}

impl Queue {
    pub(crate) fn new(settings: BatcherSettings, metrics: ModelMetrics) -> Self {
        let full_at = settings.max_rows;
        Self {
            state: Mutex::new(State {
                batcher: Batcher::new(settings),
                slots: Vec::new(),
                free: Vec::new(),
                sleeping: 0,
                closed: false,
                engines: Vec::new(),
                next_engine: 0,
            }),
            lanes: Condvar::new(),
            start: Instant::now(),
            full_at,
            submitted: AtomicU64::new(0),
            crowded: AtomicU64::new(0),
            crowded_at: AtomicU64::new(0),
            metrics,
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.time(Instant::now())
    }

    pub(crate) fn time(&self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.start);
        Time(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Hands a request in.
    pub(crate) fn submit(&self, request: Waiting) -> Result<(), NotTaken> {
        let now = self.now();
        let mut state = lock(&self.state);
        if state.closed {
            return Err(NotTaken::Closed(request));
        }
        let ticket = state.ticket_to_give();
        if let Err(refusal) = state.batcher.admit(now, request.arrival(ticket)) {
            drop(state);
            return Err(NotTaken::Refused(self.refused(&refusal, request.rows)));
        }
        state.occupy(ticket, request);
        self.submitted.fetch_add(1, Ordering::Relaxed);
        // A full batch need not wait for the transport to fall quiet.
        let wake = state.sleeping > 0 && state.batcher.queued_rows() >= self.full_at;
        drop(state);
        if wake {
            self.lanes.notify_one();
        }
        Ok(())
    }

    fn refused(&self, refusal: &AdmissionError, rows: usize) -> ServeError {
        match *refusal {
            AdmissionError::QueueFull { retry_after } => {
                self.metrics.refused();
                let milliseconds = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
                self.crowded_at.store(self.now().0, Ordering::Relaxed);
                self.crowded.store(milliseconds.max(1), Ordering::Relaxed);
                ServeError::Full { retry_after }
            }
            AdmissionError::DeadlineUnreachable => {
                self.metrics.expired(1);
                ServeError::Late
            }
            AdmissionError::TooManyRows { max } => ServeError::TooManyRows { rows, max },
        }
    }

    /// Refuses, if a request was refused a moment ago and nothing has made room since: spares a crowd the reading of
    /// its bodies. Whoever comes later is judged anew, since room may have come by itself: clients leave, batches end.
    pub(crate) fn refuse_if_crowded(&self) -> Result<(), ServeError> {
        match self.crowded.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ if self.now().0.saturating_sub(self.crowded_at.load(Ordering::Relaxed)) > A_MOMENT => Ok(()),
            milliseconds => {
                self.metrics.refused();
                Err(ServeError::Full { retry_after: Duration::from_millis(milliseconds) })
            }
        }
    }

    /// How many requests were handed in so far.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Relaxed)
    }

    /// Says that the calling thread has nothing more to read at this moment.
    pub(crate) fn quiet(&self) {
        let now = self.now();
        let mut state = lock(&self.state);
        state.batcher.on_reads_drained(now);
        let wake = state.sleeping > 0;
        drop(state);
        if wake {
            self.lanes.notify_one();
        }
    }

    /// Takes a request back that nobody waits for any more. Whether it was still waiting.
    fn take_back(&self, receiver: &Receiver) -> bool {
        let mut state = lock(&self.state);
        let ticket = receiver.ticket();
        let waited = state.batcher.cancel(ticket);
        if waited {
            state.vacate(ticket);
        }
        waited
    }

    /// The next batch for a lane of that engine; none once the lane must end.
    pub(crate) fn take(&self, engine: u64) -> Option<Work> {
        let mut expired = Vec::new();
        let mut state = lock(&self.state);
        loop {
            if !state.engines.contains(&engine) {
                return None;
            }
            let now = self.now();
            expired.clear();
            state.batcher.take_expired(now, &mut expired);
            if !expired.is_empty() {
                let late: Vec<_> = expired.iter().filter_map(|&ticket| state.vacate(ticket)).collect();
                drop(state);
                self.metrics.expired(late.len());
                answer_all(late, &Err(ServeError::Late));
                state = lock(&self.state);
                continue;
            }
            match state.batcher.next_action(now) {
                LaneAction::Run(batch) => {
                    self.crowded.store(0, Ordering::Relaxed);
                    let requests = batch.tickets.iter().filter_map(|&ticket| state.vacate(ticket)).collect();
                    let expected = state.batcher.estimate(batch.padded_rows);
                    state.batcher.recycle(batch.tickets);
                    return Some(Work {
                        id: batch.id,
                        requests,
                        rows: batch.rows,
                        padded_rows: batch.padded_rows,
                        dispatched: now,
                        expected,
                    });
                }
                LaneAction::WaitUntil(time) => {
                    let limit = Duration::from_nanos(time.0.saturating_sub(now.0));
                    state = self.sleep(state, Some(limit));
                }
                LaneAction::Idle if state.closed => return None,
                LaneAction::Idle => state = self.sleep(state, None),
            }
        }
    }

    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        state.sleeping += 1;
        let mut state = match limit {
            Some(limit) => self.lanes.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0,
            None => self.lanes.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
        state.sleeping -= 1;
        state
    }

    /// Tells the batcher that a lane holds its batch, so that it learns how long filling takes.
    pub(crate) fn filled(&self, id: u64) {
        let now = self.now();
        lock(&self.state).batcher.on_filled(now, id);
    }

    /// Tells the batcher what was measured while the model was warmed.
    pub(crate) fn teach(&self, times: &[(usize, Duration)]) {
        let now = self.now();
        let mut state = lock(&self.state);
        for &(rows, took) in times {
            state.batcher.record_batch_time(now, rows, took);
        }
    }

    /// Tells the batcher that a batch is done, so that it learns.
    pub(crate) fn finished(&self, id: u64, ok: bool) {
        let now = self.now();
        let mut state = lock(&self.state);
        state.batcher.on_finished(now, id, ok);
        // Another lane may have waited for this one to come to its end.
        let wake = state.sleeping > 0 && state.batcher.queued_requests() > 0;
        drop(state);
        if wake {
            self.lanes.notify_one();
        }
    }

    /// Puts requests of a failed batch back in front, each to run alone; those whose clients left meanwhile are not.
    pub(crate) fn retry(&self, requests: Vec<Waiting>) {
        let now = self.now();
        let mut state = lock(&self.state);
        for mut request in requests {
            if !request.sender.is_awaited() {
                self.metrics.cancelled();
                continue;
            }
            request.suspect = true;
            let ticket = state.ticket_to_give();
            state.batcher.retry(now, [request.arrival(ticket)]);
            state.occupy(ticket, request);
        }
        drop(state);
        self.lanes.notify_one();
    }

    /// Takes no more requests; those that wait are still run.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.lanes.notify_all();
    }

    /// A number for an engine that is ready, so that its lanes may take work.
    pub(crate) fn engine_started(&self) -> u64 {
        let mut state = lock(&self.state);
        state.next_engine += 1;
        let engine = state.next_engine;
        state.engines.push(engine);
        engine
    }

    /// Whether lanes of that engine may still take work.
    pub(crate) fn has_engine(&self, engine: u64) -> bool {
        lock(&self.state).engines.contains(&engine)
    }

    /// Sends the lanes of an engine home.
    pub(crate) fn engine_ended(&self, engine: u64) {
        lock(&self.state).engines.retain(|&other| other != engine);
        self.lanes.notify_all();
    }

    /// Answers everything that waits with this error.
    pub(crate) fn fail_all(&self, error: &ServeError) {
        let mut state = lock(&self.state);
        let mut waiting = Vec::new();
        for number in 0..state.slots.len() {
            let Some(ticket) = state.ticket_at(number) else { continue };
            state.batcher.cancel(ticket);
            waiting.extend(state.vacate(ticket));
        }
        drop(state);
        answer_all(waiting, &Err(error.clone()));
    }

    /// Rows and requests that wait.
    pub(crate) fn length(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.batcher.queued_rows(), state.batcher.queued_requests())
    }
}

fn answer_all(requests: Vec<Waiting>, outcome: &Outcome) {
    let mut post = Post::new(None);
    for request in requests {
        post.add(request.sender, outcome.clone());
    }
    post.deliver();
}

impl State {
    /// The ticket the next request gets, if the batcher takes it.
    fn ticket_to_give(&mut self) -> Ticket {
        if self.free.is_empty() {
            self.free.push(u32::try_from(self.slots.len()).unwrap_or(u32::MAX));
            self.slots.push(Slot::default());
        }
        let index = self.free.last().copied().unwrap_or(0);
        let generation = self.slots.get(index as usize).map_or(0, |slot| slot.generation);
        Ticket(u64::from(generation) << 32 | u64::from(index))
    }

    fn occupy(&mut self, ticket: Ticket, request: Waiting) {
        let (index, _) = split(ticket);
        request.sender.note(ticket);
        self.free.pop();
        if let Some(slot) = self.slots.get_mut(index) {
            slot.request = Some(request);
        }
    }

    fn vacate(&mut self, ticket: Ticket) -> Option<Waiting> {
        let (index, generation) = split(ticket);
        let slot = self.slots.get_mut(index).filter(|slot| slot.generation == generation)?;
        let request = slot.request.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(u32::try_from(index).unwrap_or(u32::MAX));
        Some(request)
    }

    fn ticket_at(&self, number: usize) -> Option<Ticket> {
        let slot = self.slots.get(number).filter(|slot| slot.request.is_some())?;
        Some(Ticket(u64::from(slot.generation) << 32 | number as u64))
    }
}

fn split(ticket: Ticket) -> (usize, u32) {
    #[allow(clippy::cast_possible_truncation, reason = "each is half of the number")]
    let (index, generation) = (ticket.0 as u32, (ticket.0 >> 32) as u32);
    (index as usize, generation)
}

/// A request that is with the queue or a lane: waiting for the outcome, and taking the request back if whoever waits
/// goes away first.
pub(crate) struct Pending {
    queue: Arc<Queue>,
    receiver: Receiver,
    /// Whether there is no outcome yet.
    open: bool,
}

impl Pending {
    /// Hands a request in.
    pub(crate) fn submit(queue: &Arc<Queue>, make: impl FnOnce(Sender) -> Waiting) -> Result<Self, NotTaken> {
        let (sender, receiver) = reply::pair();
        queue.submit(make(sender))?;
        Ok(Self { queue: Arc::clone(queue), receiver, open: true })
    }

    /// Waits for the outcome, until the deadline if there is one.
    pub(crate) async fn outcome(mut self, deadline: Option<Instant>) -> Result<Answer, ServeError> {
        let outcome = match deadline {
            None => (&mut self.receiver).await,
            Some(deadline) => {
                let waited = tokio::time::timeout_at(deadline.into(), &mut self.receiver).await;
                if waited.is_err() && self.queue.take_back(&self.receiver) {
                    self.queue.metrics.expired(1);
                }
                waited.unwrap_or(Err(ServeError::Late))
            }
        };
        self.open = false;
        outcome
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.open && self.queue.take_back(&self.receiver) {
            self.queue.metrics.cancelled();
        }
    }
}
