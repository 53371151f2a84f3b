//! When a thread has nothing more to read.
//!
//! A request that is already in a socket's buffer should share the batch of the one just read. So after a request is
//! handed in, the thread looks once more at its connections, and only when that brings nothing new are the lanes told
//! to go ahead. That look costs under a microsecond and is made once for all requests of a round.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::model::Queue;
use crate::reply::lock;

thread_local! {
    static WATCH: RefCell<Option<Arc<Watch>>> = const { RefCell::new(None) };
}

/// Queues of this thread that wait to hear that it is quiet.
#[derive(Default)]
struct Watch {
    queues: std::sync::Mutex<Vec<Arc<Queue>>>,
    expected: Notify,
}

/// The look at the connections once more.
pub(crate) struct Quiet;

impl Quiet {
    /// The task that does it for this thread; to be run on this thread's runtime.
    pub(crate) fn install() -> impl Future<Output = ()> + Send {
        let watch = Arc::new(Watch::default());
        WATCH.set(Some(Arc::clone(&watch)));
        async move {
            let mut queues: Vec<(Arc<Queue>, u64)> = Vec::new();
            loop {
                watch.expected.notified().await;
                loop {
                    for queue in lock(&watch.queues).drain(..) {
                        if !queues.iter().any(|(known, _)| Arc::ptr_eq(known, &queue)) {
                            let seen = queue.submitted();
                            queues.push((queue, seen));
                        }
                    }
                    // Lets the runtime look at the sockets; whatever was readable has been read when this goes on.
                    tokio::task::yield_now().await;
                    queues.retain_mut(|(queue, seen)| {
                        let submitted = queue.submitted();
                        let quiet = submitted == *seen;
                        *seen = submitted;
                        if quiet {
                            queue.quiet();
                        }
                        !quiet
                    });
                    if queues.is_empty() && lock(&watch.queues).is_empty() {
                        break;
                    }
                }
            }
        }
    }

    /// Says that this thread has handed something to the queue.
    pub(crate) fn expect(queue: &Arc<Queue>) {
        WATCH.with_borrow(|watch| match watch {
            Some(watch) => {
                let mut queues = lock(&watch.queues);
                if !queues.iter().any(|known| Arc::ptr_eq(known, queue)) {
                    queues.push(Arc::clone(queue));
                }
                let first = queues.len() == 1;
                drop(queues);
                if first {
                    watch.expected.notify_one();
                }
            }
            None => queue.quiet(),
        });
    }
}
