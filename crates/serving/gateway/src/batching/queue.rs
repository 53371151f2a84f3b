//! The queue of one upstream: the batcher, and the requests behind its tickets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cudock_base::lock;
use cudock_batcher::{AdmissionError, Arrival, Batcher, BatcherSettings, LaneAction, Ticket, Time};
use cudock_server::HttpRejection;
use tokio::sync::oneshot;

use crate::batching::batchable::{BatchAnswer, BatchableRequest};
use crate::error::GatewayError;

/// Time for which one rejection applies to other requests, too.
const REJECTION_VALIDITY: Duration = Duration::from_millis(1);

pub(crate) struct BatchQueue {
    state: Mutex<QueueState>,
    start: Instant,
    /// Rows of a full batch.
    full_rows: usize,
}

struct QueueState {
    batcher: Batcher,
    requests: HashMap<Ticket, QueuedRequest>,
    /// Batches that are running.
    running: Vec<u64>,
    /// Whether requests are accepted.
    is_open: bool,
    next_ticket: u64,
    /// The time of the next check of the queue in any case.
    timer: Option<Time>,
    /// When a request was last rejected, and its retry delay; `None` once a batch has made room.
    rejection: Option<(Instant, Duration)>,
}

pub(crate) struct QueuedRequest {
    pub(crate) request: Arc<BatchableRequest>,
    pub(crate) reply: oneshot::Sender<BatchResult>,
}

pub(crate) type BatchResult = Result<BatchAnswer, Unanswered>;

/// Why a request of a batch has no answer.
#[derive(Clone)]
pub(crate) enum Unanswered {
    /// It was not sent.
    Unsent,
    /// It was sent, and the upstream was lost: it may have been processed.
    Lost(GatewayError),
    Failed(GatewayError),
    /// It must be sent by itself, because the upstream's answer to its batch cannot be split.
    Alone,
}

pub(crate) struct QueuedBatch {
    pub(crate) id: u64,
    pub(crate) requests: Vec<QueuedRequest>,
}

impl BatchQueue {
    pub(crate) fn new(settings: BatcherSettings) -> Self {
        let full_rows = settings.max_rows;
        let state = QueueState {
            batcher: Batcher::new(settings),
            requests: HashMap::new(),
            running: Vec::new(),
            is_open: false,
            next_ticket: 0,
            timer: None,
            rejection: None,
        };
        Self { state: Mutex::new(state), start: Instant::now(), full_rows }
    }

    fn time(&self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.start);
        Time(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Accepts requests: the upstream can be reached.
    pub(crate) fn open(&self) {
        lock(&self.state).is_open = true;
    }

    /// Gives up on an upstream that cannot be reached: what is queued is to be sent elsewhere. Batches that are running may
    /// still be answered, but no longer keep others from being sent once the upstream is back.
    pub(crate) fn close(&self) {
        let now = self.time(Instant::now());
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        state.is_open = false;
        for batch in state.running.drain(..) {
            state.batcher.on_finished(now, batch, false);
        }
        for (ticket, request) in state.requests.drain() {
            state.batcher.cancel(ticket);
            let _ = request.reply.send(Err(Unanswered::Unsent));
        }
    }

    /// Queues a request. Returns its ticket, and whether there is a full batch.
    pub(crate) fn submit(
        &self,
        request: QueuedRequest,
        deadline: Option<Instant>,
    ) -> Result<(Ticket, bool), Unanswered> {
        let instant = Instant::now();
        let now = self.time(instant);
        let mut state = lock(&self.state);
        if !state.is_open {
            return Err(Unanswered::Unsent);
        }
        state.next_ticket += 1;
        let ticket = Ticket(state.next_ticket);
        let BatchableRequest { rows, bucket, .. } = &*request.request;
        let arrival = Arrival {
            ticket,
            rows: rows.count(),
            bucket: *bucket,
            bytes: rows.body().len(),
            priority: 0,
            deadline: deadline.map(|deadline| self.time(deadline)),
        };
        match state.batcher.admit(now, arrival) {
            Ok(()) => {}
            Err(AdmissionError::QueueFull { retry_after }) => {
                state.rejection = Some((instant, retry_after));
                return Err(Unanswered::Failed(HttpRejection::Overloaded { retry_after }.into()));
            }
            Err(AdmissionError::DeadlineUnreachable) => {
                return Err(Unanswered::Failed(GatewayError::DeadlineExceeded));
            }
        }
        state.requests.insert(ticket, request);
        Ok((ticket, state.batcher.queued_rows() >= self.full_rows))
    }

    /// The retry delay of a request that was rejected a moment ago, if no batch has started since.
    pub(crate) fn recent_rejection(&self) -> Option<Duration> {
        let (instant, retry_after) = lock(&self.state).rejection?;
        (instant.elapsed() < REJECTION_VALIDITY).then_some(retry_after)
    }

    /// Removes a request if it is still queued, and returns whether it was.
    pub(crate) fn withdraw(&self, ticket: Ticket) -> bool {
        let mut state = lock(&self.state);
        let is_queued = state.batcher.cancel(ticket);
        if is_queued {
            state.requests.remove(&ticket);
        }
        is_queued
    }

    /// Reports that the calling thread has nothing left to read.
    pub(crate) fn on_reads_drained(&self) {
        let now = self.time(Instant::now());
        lock(&self.state).batcher.on_reads_drained(now);
    }

    /// The next action. The caller arms a timer for `WaitUntil`; with `Idle`, one that is armed already is enough.
    pub(crate) fn next_action(&self) -> LaneAction<QueuedBatch, Instant> {
        let now = self.time(Instant::now());
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        if state.timer.is_some_and(|timer| timer <= now) {
            state.timer = None;
        }
        let action = state.batcher.next_action(now);
        let mut expired = Vec::new();
        state.batcher.take_expired(now, &mut expired);
        for request in expired.iter().filter_map(|ticket| state.requests.remove(ticket)) {
            let _ = request.reply.send(Err(Unanswered::Failed(GatewayError::DeadlineExceeded)));
        }
        match action {
            LaneAction::Run(batch) => {
                state.rejection = None;
                let requests =
                    batch.tickets.iter().filter_map(|ticket| state.requests.remove(ticket)).collect();
                state.batcher.recycle(batch.tickets);
                state.running.push(batch.id);
                LaneAction::Run(QueuedBatch { id: batch.id, requests })
            }
            LaneAction::WaitUntil(time) if state.timer.is_none_or(|timer| time < timer) => {
                state.timer = Some(time);
                LaneAction::WaitUntil(self.start + Duration::from_nanos(time.0))
            }
            LaneAction::WaitUntil(_) | LaneAction::Idle => LaneAction::Idle,
        }
    }

    /// Reports that a batch has ended; `ok` if its time is representative.
    pub(crate) fn finished(&self, batch: u64, ok: bool) {
        let now = self.time(Instant::now());
        let mut state = lock(&self.state);
        state.running.retain(|running| *running != batch);
        state.batcher.on_finished(now, batch, ok);
    }

    pub(crate) fn queued_rows(&self) -> usize {
        lock(&self.state).batcher.queued_rows()
    }
}
