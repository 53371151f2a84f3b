//! The queue between requests and lanes.
//!
//! The batcher decides which requests run together; this is the lock around it, the requests behind its tickets, and
//! the sleeping and waking of lanes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudock_base::lock;
use cudock_batcher::{AdmissionError, Arrival, Batcher, BatcherSettings, LaneAction, Ticket, Time};
use cudock_server::HttpRejection;
use cudock_tensor::Tensor;
use slab::Slab;

use super::crashes::Crashes;
use crate::ServeError;
use crate::metrics::ModelMetrics;
use crate::page::status::QueueStatus;
use crate::read_tracker::SubmissionQueue;
use crate::reply::{self, InferenceResult, ReplyBatch, ReplyReceiver, ReplySender, Unanswered};
use crate::service::residency::Usage;

/// Time for which one rejection applies to other requests, too, in nanoseconds.
const REJECTION_VALIDITY: u64 = 1_000_000;

pub(crate) struct Queue {
    state: Mutex<QueueState>,
    lanes: Condvar,
    start: Instant,
    /// Rows of a full batch.
    full_rows: usize,
    /// Number of submitted requests; shows whether a thread had something left to read.
    submitted: AtomicU64,
    /// Retry delay of the last rejected request, in milliseconds; 0 once a batch has made room.
    retry_after_ms: AtomicU64,
    rejected_at: AtomicU64,
    pub(crate) crashes: Crashes,
    pub(crate) metrics: ModelMetrics,
}

struct QueueState {
    batcher: Batcher,
    requests: Slab<(u32, PendingRequest)>,
    /// The upper half of the next ticket, so that a stale ticket does not name another request.
    generation: u32,
    sleeping: usize,
    closed: bool,
    /// Requests that are run before the lanes end, because the model is unloaded; `None` while it is loaded.
    runs_left: Option<usize>,
    last_request: Option<Instant>,
    /// Engines whose lanes may take batches, and the number of the next engine.
    engines: Vec<u64>,
    next_engine: u64,
}

pub(crate) struct PendingRequest {
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) rows: usize,
    pub(crate) bucket: u64,
    pub(crate) priority: u32,
    pub(crate) deadline: Option<Time>,
    pub(crate) received: Time,
    pub(crate) attempt: Attempt,
    pub(crate) sender: ReplySender,
}

/// How a request runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    /// Again with the other requests of its batch, whose engine died or hung: most often for another reason.
    Together,
    /// Again with nothing else in the engine, because one of the requests of its batch may be at fault.
    Alone,
}

impl PendingRequest {
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

pub(crate) struct RunnableBatch {
    pub(crate) id: u64,
    pub(crate) requests: Vec<PendingRequest>,
    pub(crate) rows: usize,
    pub(crate) padded_rows: usize,
    pub(crate) dispatched: Time,
    /// Estimated time, if the batcher has seen such batches.
    pub(crate) expected: Option<Duration>,
    pub(crate) bucket: u64,
    /// Maximum number of rows of its bucket that fit into the device's memory, if that is known.
    pub(crate) row_limit: Option<usize>,
}

impl Queue {
    pub(crate) fn new(settings: BatcherSettings, metrics: ModelMetrics) -> Self {
        let full_rows = settings.max_rows;
        Self {
            state: Mutex::new(QueueState {
                batcher: Batcher::new(settings),
                requests: Slab::new(),
                generation: 0,
                sleeping: 0,
                closed: false,
                runs_left: None,
                last_request: None,
                engines: Vec::new(),
                next_engine: 0,
            }),
            lanes: Condvar::new(),
            start: Instant::now(),
            full_rows,
            submitted: AtomicU64::new(0),
            retry_after_ms: AtomicU64::new(0),
            rejected_at: AtomicU64::new(0),
            crashes: Crashes::default(),
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

    /// The reverse of [`Self::time`].
    pub(crate) fn instant(&self, time: Time) -> Instant {
        self.start + Duration::from_nanos(time.0)
    }

    pub(crate) fn submit(&self, request: PendingRequest) -> Result<(), Unanswered> {
        let instant = Instant::now();
        let now = self.time(instant);
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Unanswered::Returned(request.inputs));
        }
        state.last_request = Some(instant);
        let ticket = state.next_ticket();
        if let Err(error) = state.batcher.admit(now, request.arrival(ticket)) {
            drop(state);
            return Err(Unanswered::Failed(self.reject(error)));
        }
        state.insert_request(ticket, request);
        self.submitted.fetch_add(1, Ordering::Relaxed);
        // A full batch need not wait until the reads are drained.
        let is_full = state.batcher.queued_rows() >= self.full_rows;
        self.wake_lane(state, is_full);
        Ok(())
    }

    /// Unlocks the state, and wakes a sleeping lane if there is work for it.
    fn wake_lane(&self, state: MutexGuard<'_, QueueState>, has_work: bool) {
        let wake = has_work && state.sleeping > 0;
        drop(state);
        if wake {
            self.lanes.notify_one();
        }
    }

    fn reject(&self, error: AdmissionError) -> ServeError {
        match error {
            AdmissionError::QueueFull { retry_after } => {
                self.metrics.rejected();
                let milliseconds = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
                self.rejected_at.store(self.now().0, Ordering::Relaxed);
                self.retry_after_ms.store(milliseconds.max(1), Ordering::Relaxed);
                HttpRejection::Overloaded { retry_after }.into()
            }
            AdmissionError::DeadlineUnreachable => {
                self.metrics.expired(1);
                ServeError::DeadlineExceeded
            }
        }
    }

    /// Rejects a request if another one was rejected a moment ago and no batch has started since: it saves reading the
    /// bodies of a burst. Later requests are judged again, because room may appear without a batch: clients disconnect,
    /// batches end.
    pub(crate) fn reject_if_full(&self) -> Result<(), ServeError> {
        let milliseconds = self.retry_after_ms.load(Ordering::Relaxed);
        let is_valid =
            || self.now().0.saturating_sub(self.rejected_at.load(Ordering::Relaxed)) <= REJECTION_VALIDITY;
        if milliseconds == 0 || !is_valid() {
            return Ok(());
        }
        self.metrics.rejected();
        Err(HttpRejection::Overloaded { retry_after: Duration::from_millis(milliseconds) }.into())
    }

    /// Withdraws a request that nothing waits for; returns whether it was still queued.
    fn withdraw(&self, receiver: &ReplyReceiver) -> bool {
        let mut state = lock(&self.state);
        let ticket = receiver.ticket();
        let waited = state.batcher.cancel(ticket);
        if waited {
            state.remove_request(ticket);
        }
        waited
    }

    /// The next batch for a lane of that engine; `None` once the lane must end.
    pub(crate) fn take(&self, engine: u64) -> Option<RunnableBatch> {
        let mut expired = Vec::new();
        let mut state = lock(&self.state);
        loop {
            if !state.engines.contains(&engine) || state.runs_left == Some(0) {
                return None;
            }
            let now = self.now();
            expired.clear();
            state.batcher.take_expired(now, &mut expired);
            if !expired.is_empty() {
                let late: Vec<_> =
                    expired.iter().filter_map(|&ticket| state.remove_request(ticket)).collect();
                drop(state);
                self.metrics.expired(late.len());
                reply_all(late, &ServeError::DeadlineExceeded);
                state = lock(&self.state);
                continue;
            }
            match state.batcher.next_action(now) {
                LaneAction::Run(batch) => {
                    self.retry_after_ms.store(0, Ordering::Relaxed);
                    let requests: Vec<_> =
                        batch.tickets.iter().filter_map(|&ticket| state.remove_request(ticket)).collect();
                    state.runs_left = state.runs_left.map(|left| left.saturating_sub(requests.len()));
                    let expected = state.batcher.estimate(batch.padded_rows);
                    let row_limit = state.batcher.row_limit(batch.bucket);
                    state.batcher.recycle(batch.tickets);
                    return Some(RunnableBatch {
                        id: batch.id,
                        requests,
                        rows: batch.rows,
                        padded_rows: batch.padded_rows,
                        dispatched: now,
                        expected,
                        bucket: batch.bucket,
                        row_limit,
                    });
                }
                LaneAction::WaitUntil(time) => {
                    let limit = Duration::from_nanos(time.0.saturating_sub(now.0));
                    state = self.sleep(state, Some(limit));
                }
                LaneAction::Idle if state.closed || state.runs_left.is_some() => return None,
                LaneAction::Idle => state = self.sleep(state, None),
            }
        }
    }

    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, QueueState>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, QueueState> {
        state.sleeping += 1;
        let mut state = match limit {
            Some(limit) => self.lanes.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0,
            None => self.lanes.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
        state.sleeping -= 1;
        state
    }

    pub(crate) fn filled(&self, id: u64) {
        let now = self.now();
        lock(&self.state).batcher.on_filled(now, id);
    }

    /// Reports batch times that were measured during warm-up.
    pub(crate) fn record_batch_times(&self, times: &[(usize, Duration)]) {
        let now = self.now();
        let mut state = lock(&self.state);
        for &(rows, took) in times {
            state.batcher.record_batch_time(now, rows, took);
        }
    }

    /// Rows of the parts in which to run a batch of `rows` that does not fit into the device's memory.
    pub(crate) fn part_rows(&self, rows: usize) -> usize {
        lock(&self.state).batcher.part_rows(rows)
    }

    /// Rows that the engine runs for a part of `rows` if at most `most` fit.
    pub(crate) fn padded_within(&self, rows: usize, most: usize) -> usize {
        lock(&self.state).batcher.padded_within(rows, most)
    }

    /// Limits the rows of batches of a bucket from now on. Returns whether the limit is lower than before.
    pub(crate) fn limit_rows(&self, bucket: u64, rows: usize) -> bool {
        lock(&self.state).batcher.limit_rows(bucket, rows)
    }

    /// Rows of a batch that fit into the device's memory, of the bucket with the fewest, if a batch did not fit.
    pub(crate) fn row_limit(&self) -> Option<usize> {
        lock(&self.state).batcher.lowest_row_limit()
    }

    pub(crate) fn finished(&self, id: u64, ok: bool) {
        let now = self.now();
        let mut state = lock(&self.state);
        state.batcher.on_finished(now, id, ok);
        // Another lane may have waited for this one to finish.
        let has_requests = state.batcher.queued_requests() > 0;
        self.wake_lane(state, has_requests);
    }

    /// Reports that an engine crashed while it ran requests. Returns whether another one did a short time before.
    pub(crate) fn engine_crashed(&self, engine: u64) -> bool {
        let is_wary = self.crashes.record(engine, Instant::now());
        if is_wary {
            let now = self.now();
            lock(&self.state).batcher.be_careful(now);
        }
        is_wary
    }

    /// Queues the requests of a failed batch again, before others, except those whose clients disconnected.
    pub(crate) fn retry(&self, requests: Vec<PendingRequest>, attempt: Attempt) {
        let now = self.now();
        let mut state = lock(&self.state);
        // Another bucket than that of other requests, so that none of them joins the batch.
        let bucket = !requests.first().map_or(0, |request| request.received.0);
        for mut request in requests {
            if !request.sender.is_awaited() {
                self.metrics.canceled();
                continue;
            }
            request.attempt = attempt;
            state.runs_left = state.runs_left.map(|left| left + 1);
            let ticket = state.next_ticket();
            let arrival = request.arrival(ticket);
            if attempt == Attempt::Together {
                state.batcher.retry_together(request.received, Arrival { bucket, ..arrival });
            } else {
                state.batcher.retry_alone(now, arrival);
            }
            state.insert_request(ticket, request);
        }
        drop(state);
        self.lanes.notify_one();
    }

    /// Accepts no more requests; the queued ones still run.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.lanes.notify_all();
    }

    /// Makes the lanes end once they have run what is queued; later requests stay in the queue.
    pub(crate) fn pause(&self) {
        let mut state = lock(&self.state);
        state.runs_left = Some(state.batcher.queued_requests());
        drop(state);
        self.lanes.notify_all();
    }

    /// Lets lanes take batches again.
    pub(crate) fn resume(&self) {
        lock(&self.state).runs_left = None;
    }

    pub(crate) fn usage(&self) -> Usage {
        let state = lock(&self.state);
        let oldest = state.requests.iter().map(|(_, (_, request))| request.received).min();
        Usage {
            waiting_since: oldest.map(|time| self.instant(time)),
            is_running: state.batcher.is_running(),
            last_request: state.last_request,
            is_stalled: false,
        }
    }

    /// Registers an engine, so that its lanes may take batches, and returns its number.
    pub(crate) fn engine_started(&self) -> u64 {
        let mut state = lock(&self.state);
        state.next_engine += 1;
        let engine = state.next_engine;
        state.engines.push(engine);
        engine
    }

    /// Whether lanes of that engine may still take batches.
    pub(crate) fn has_engine(&self, engine: u64) -> bool {
        lock(&self.state).engines.contains(&engine)
    }

    /// Makes the lanes of an engine end.
    pub(crate) fn engine_ended(&self, engine: u64) {
        lock(&self.state).engines.retain(|&other| other != engine);
        self.lanes.notify_all();
    }

    pub(crate) fn fail_all(&self, error: &ServeError) {
        self.crashes.release_all();
        reply_all(self.take_all(), error);
    }

    /// Returns all queued requests to those who submitted them.
    pub(crate) fn return_all(&self) {
        self.crashes.release_all();
        let mut replies = ReplyBatch::new(None);
        for request in self.take_all() {
            replies.add_returned(request.sender, request.inputs);
        }
        replies.deliver();
    }

    fn take_all(&self) -> Vec<PendingRequest> {
        let mut state = lock(&self.state);
        let tickets: Vec<_> =
            state.requests.iter().map(|(key, (generation, _))| ticket(*generation, key)).collect();
        let mut pending = Vec::new();
        for ticket in tickets {
            state.batcher.cancel(ticket);
            pending.extend(state.remove_request(ticket));
        }
        pending
    }

    pub(crate) fn status(&self) -> QueueStatus {
        let state = lock(&self.state);
        QueueStatus { rows: state.batcher.queued_rows(), requests: state.batcher.queued_requests() }
    }
}

impl SubmissionQueue for Queue {
    fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Relaxed)
    }

    fn on_reads_drained(&self) {
        let now = self.now();
        let mut state = lock(&self.state);
        state.batcher.on_reads_drained(now);
        self.wake_lane(state, true);
    }
}

fn reply_all(requests: Vec<PendingRequest>, error: &ServeError) {
    let mut replies = ReplyBatch::new(None);
    for request in requests {
        replies.add(request.sender, Err(error.clone()));
    }
    replies.deliver();
}

impl QueueState {
    /// The ticket of the next request, if the batcher admits it.
    fn next_ticket(&mut self) -> Ticket {
        self.generation = self.generation.wrapping_add(1);
        ticket(self.generation, self.requests.vacant_key())
    }

    fn insert_request(&mut self, ticket: Ticket, request: PendingRequest) {
        request.sender.set_ticket(ticket);
        self.requests.insert((self.generation, request));
    }

    fn remove_request(&mut self, ticket: Ticket) -> Option<PendingRequest> {
        #[allow(clippy::cast_possible_truncation, reason = "each is half of the number")]
        let (key, generation) = (ticket.0 as u32 as usize, (ticket.0 >> 32) as u32);
        self.requests.get(key).filter(|(current, _)| *current == generation)?;
        self.requests.try_remove(key).map(|(_, request)| request)
    }
}

fn ticket(generation: u32, key: usize) -> Ticket {
    Ticket(u64::from(generation) << 32 | key as u64)
}

/// A submitted request: waits for the result, and withdraws the request when dropped before.
pub(crate) struct Submission {
    queue: Arc<Queue>,
    receiver: ReplyReceiver,
    /// Whether there is no result yet.
    open: bool,
}

impl Submission {
    pub(crate) fn submit(
        queue: &Arc<Queue>,
        make: impl FnOnce(ReplySender) -> PendingRequest,
    ) -> Result<Self, Unanswered> {
        let (sender, receiver) = reply::channel();
        queue.submit(make(sender))?;
        Ok(Self { queue: Arc::clone(queue), receiver, open: true })
    }

    /// Waits for the result, until the deadline if there is one.
    pub(crate) async fn result(mut self, deadline: Option<Instant>) -> InferenceResult {
        let result = match deadline {
            None => (&mut self.receiver).await,
            Some(deadline) => {
                let waited = tokio::time::timeout_at(deadline.into(), &mut self.receiver).await;
                if waited.is_err() && self.queue.withdraw(&self.receiver) {
                    self.queue.metrics.expired(1);
                }
                waited.unwrap_or(Err(Unanswered::Failed(ServeError::DeadlineExceeded)))
            }
        };
        self.open = false;
        result
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        if self.open && self.queue.withdraw(&self.receiver) {
            self.queue.metrics.canceled();
        }
    }
}
