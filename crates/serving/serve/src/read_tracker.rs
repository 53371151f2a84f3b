//! Detects when an I/O thread has nothing more to read.
//!
//! A request that is already in a socket's buffer should share the batch of the one just read. So after a request is
//! submitted, the thread polls its connections once more, and only if that brings nothing new do the lanes start. The
//! extra poll takes less than a microsecond and is made once for all requests of a round.

use std::cell::RefCell;
use std::future::Future;
use std::sync::{Arc, Mutex};

use cudock_base::lock;
use tokio::sync::Notify;

/// A queue that waits with its batches until a thread has nothing more to read.
pub(crate) trait SubmissionQueue: Send + Sync {
    /// The number of requests that were submitted so far.
    fn submitted(&self) -> u64;

    /// Reports that the calling thread has nothing left to read.
    fn on_reads_drained(&self);
}

thread_local! {
    static TRACKER: RefCell<Option<Arc<SubmittedQueues>>> = const { RefCell::new(None) };
}

/// Queues to which this thread has submitted requests and that wait until its reads are drained.
#[derive(Default)]
struct SubmittedQueues {
    queues: Mutex<Vec<Arc<dyn SubmissionQueue>>>,
    submitted: Notify,
}

/// The read tracker of the current thread.
pub(crate) struct ReadTracker;

impl ReadTracker {
    /// Returns the task that tracks this thread; it must run on this thread's runtime.
    pub(crate) fn install() -> impl Future<Output = ()> + Send {
        let tracker = Arc::new(SubmittedQueues::default());
        TRACKER.set(Some(Arc::clone(&tracker)));
        async move {
            let mut queues: Vec<(Arc<dyn SubmissionQueue>, u64)> = Vec::new();
            loop {
                tracker.submitted.notified().await;
                loop {
                    for queue in lock(&tracker.queues).drain(..) {
                        if !queues.iter().any(|(known, _)| Arc::ptr_eq(known, &queue)) {
                            let submitted = queue.submitted();
                            queues.push((queue, submitted));
                        }
                    }
                    // The runtime polls the sockets: everything readable has been read when this returns.
                    tokio::task::yield_now().await;
                    queues.retain_mut(|(queue, submitted_before)| {
                        let submitted = queue.submitted();
                        let is_drained = submitted == *submitted_before;
                        *submitted_before = submitted;
                        if is_drained {
                            queue.on_reads_drained();
                        }
                        !is_drained
                    });
                    if queues.is_empty() && lock(&tracker.queues).is_empty() {
                        break;
                    }
                }
            }
        }
    }

    /// Records that this thread has submitted a request to the queue.
    pub(crate) fn on_submitted(queue: Arc<dyn SubmissionQueue>) {
        TRACKER.with_borrow(|tracker| match tracker {
            Some(tracker) => {
                let mut queues = lock(&tracker.queues);
                if !queues.iter().any(|known| Arc::ptr_eq(known, &queue)) {
                    queues.push(queue);
                }
                let first = queues.len() == 1;
                drop(queues);
                if first {
                    tracker.submitted.notify_one();
                }
            }
            None => queue.on_reads_drained(),
        });
    }
}
