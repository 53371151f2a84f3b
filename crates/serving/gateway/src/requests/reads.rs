//! Detects when an I/O thread has nothing more to read.
//!
//! A request that is already in a socket's buffer should share the batch of the one just read. So after a request is
//! queued, the thread polls its connections once more, and only if that brings nothing new are batches dispatched.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

thread_local! {
    static READS: RefCell<Option<Arc<ReadSignal>>> = const { RefCell::new(None) };
}

/// Requests that this thread has queued.
#[derive(Default)]
struct ReadSignal {
    queued: AtomicU64,
    notify: Notify,
}

/// Returns the task that calls `drained` whenever this thread has queued requests and has no more to read. It must run on
/// this thread's runtime.
pub(crate) fn install(drained: impl Fn() + Send) -> impl Future<Output = ()> + Send {
    let signal = Arc::<ReadSignal>::default();
    READS.set(Some(Arc::clone(&signal)));
    async move {
        loop {
            signal.notify.notified().await;
            loop {
                let before = signal.queued.load(Ordering::Relaxed);
                // The runtime polls the sockets: everything readable has been read when this returns.
                tokio::task::yield_now().await;
                if signal.queued.load(Ordering::Relaxed) == before {
                    break;
                }
            }
            drained();
        }
    }
}

/// Records that this thread has queued a request, or written responses that may bring new ones.
pub(crate) fn on_queued() {
    READS.with_borrow(|signal| {
        if let Some(signal) = signal {
            signal.queued.fetch_add(1, Ordering::Relaxed);
            signal.notify.notify_one();
        }
    });
}
