//! Delivers results from the thread that ran a batch to the tasks that wait for them.
//!
//! Waking a task from another thread costs a system call. A batch completes dozens of tasks at once, so their results
//! are pushed together to the reply queue of the thread they live on: one wake-up per batch and thread, and that
//! thread's own task does the rest, where waking is a push onto a list.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cudock_base::lock;
use cudock_batcher::Ticket;
use cudock_tensor::{InferenceResponse, Tensor};
use tokio::sync::Notify;

use crate::ServeError;
use crate::metrics::RunTimes;
use crate::read_tracker::{ReadTracker, SubmissionQueue};

/// The outcome of a request without a response.
#[derive(Clone)]
pub(crate) enum Unanswered {
    /// It did not run, because the model was replaced or the server is shutting down. These are its inputs.
    Returned(Vec<Tensor>),
    Failed(ServeError),
}

pub(crate) type InferenceResult = Result<TimedResponse, Unanswered>;

/// A response, and when it was computed.
#[derive(Clone)]
pub(crate) struct TimedResponse {
    pub(crate) response: InferenceResponse,
    pub(crate) run: RunTimes,
}

thread_local! {
    static REPLY_QUEUE: RefCell<Option<Arc<ReplyQueue>>> = const { RefCell::new(None) };
}

/// Results for the tasks of one thread.
#[derive(Default)]
pub(crate) struct ReplyQueue {
    replies: Mutex<Vec<Reply>>,
    /// Queues whose lanes wait until the responses are written and the next requests are read.
    queues: Mutex<Vec<Arc<dyn SubmissionQueue>>>,
    arrived: Notify,
}

pub(crate) struct Reply {
    slot: Arc<ReplySlot>,
    result: InferenceResult,
}

impl ReplyQueue {
    /// Creates the reply queue of this thread, and returns the task that empties it; it must run on this thread's
    /// runtime.
    pub(crate) fn install() -> impl Future<Output = ()> + Send {
        let reply_queue = Arc::new(Self::default());
        REPLY_QUEUE.set(Some(Arc::clone(&reply_queue)));
        async move {
            let mut replies = Vec::new();
            loop {
                reply_queue.arrived.notified().await;
                std::mem::swap(&mut replies, &mut *lock(&reply_queue.replies));
                for Reply { slot, result } in replies.drain(..) {
                    slot.put(result);
                }
                for queue in lock(&reply_queue.queues).drain(..) {
                    ReadTracker::on_submitted(queue);
                }
            }
        }
    }

    fn push(&self, batch: &mut Vec<Reply>, queue: Option<&Arc<dyn SubmissionQueue>>) {
        lock(&self.replies).append(batch);
        lock(&self.queues).extend(queue.cloned());
        self.arrived.notify_one();
    }
}

/// Collects replies, grouped by thread.
pub(crate) struct ReplyBatch {
    per_thread: Vec<(Arc<ReplyQueue>, Vec<Reply>)>,
    queue: Option<Arc<dyn SubmissionQueue>>,
}

impl ReplyBatch {
    pub(crate) fn new(queue: Option<Arc<dyn SubmissionQueue>>) -> Self {
        Self { per_thread: Vec::new(), queue }
    }

    pub(crate) fn add(&mut self, sender: ReplySender, result: Result<TimedResponse, ServeError>) {
        self.add_result(sender, result.map_err(Unanswered::Failed));
    }

    /// Returns a request that did not run.
    pub(crate) fn add_returned(&mut self, sender: ReplySender, inputs: Vec<Tensor>) {
        self.add_result(sender, Err(Unanswered::Returned(inputs)));
    }

    fn add_result(&mut self, sender: ReplySender, result: InferenceResult) {
        let ReplySender { slot, reply_queue } = sender;
        let Some(reply_queue) = reply_queue else {
            slot.put(result);
            return;
        };
        let reply = Reply { slot, result };
        match self.per_thread.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &reply_queue)) {
            Some((_, replies)) => replies.push(reply),
            None => self.per_thread.push((reply_queue, vec![reply])),
        }
    }

    pub(crate) fn deliver(&mut self) {
        for (reply_queue, replies) in &mut self.per_thread {
            if !replies.is_empty() {
                reply_queue.push(replies, self.queue.as_ref());
            }
        }
    }
}

#[derive(Default)]
struct ReplySlot {
    state: Mutex<SlotState>,
    /// The current ticket of the request.
    ticket: AtomicU64,
}

#[derive(Default)]
struct SlotState {
    result: Option<InferenceResult>,
    waker: Option<Waker>,
}

impl ReplySlot {
    fn put(&self, result: InferenceResult) {
        let waker = {
            let mut state = lock(&self.state);
            state.result = Some(result);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The sending half, held by a batch.
pub(crate) struct ReplySender {
    slot: Arc<ReplySlot>,
    reply_queue: Option<Arc<ReplyQueue>>,
}

impl ReplySender {
    /// Sets the current ticket of the request. Call it, like [`ReplyReceiver::ticket`], only under the queue's lock.
    pub(crate) fn set_ticket(&self, ticket: Ticket) {
        self.slot.ticket.store(ticket.0, Ordering::Relaxed);
    }

    /// Whether the receiver still exists.
    pub(crate) fn is_awaited(&self) -> bool {
        Arc::strong_count(&self.slot) > 1
    }
}

/// The receiving half, on which a task waits.
pub(crate) struct ReplyReceiver {
    slot: Arc<ReplySlot>,
}

/// Creates both halves. Results are delivered through the reply queue of the calling thread, if it has one.
pub(crate) fn channel() -> (ReplySender, ReplyReceiver) {
    let slot = Arc::new(ReplySlot::default());
    let reply_queue = REPLY_QUEUE.with_borrow(Clone::clone);
    (ReplySender { slot: Arc::clone(&slot), reply_queue }, ReplyReceiver { slot })
}

impl ReplyReceiver {
    /// The current ticket of the request; a retry gets another one.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.slot.ticket.load(Ordering::Relaxed))
    }
}

impl Future for ReplyReceiver {
    type Output = InferenceResult;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<InferenceResult> {
        let mut state = lock(&self.slot.state);
        if let Some(result) = state.result.take() {
            return Poll::Ready(result);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
