//! The signal to shut down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Notifies all parts of a server of its shutdown. Once it has begun, draining does not end.
#[derive(Clone, Debug, Default)]
pub struct DrainSignal(Arc<DrainState>);

#[derive(Debug, Default)]
struct DrainState {
    has_begun: AtomicBool,
    begun: Notify,
}

impl DrainSignal {
    /// Starts the shutdown: accepted requests are finished, new connections are refused.
    pub fn begin(&self) {
        self.0.has_begun.store(true, Ordering::Release);
        self.0.begun.notify_waiters();
    }

    pub fn has_begun(&self) -> bool {
        self.0.has_begun.load(Ordering::Acquire)
    }

    pub async fn begun(&self) {
        let begun = self.0.begun.notified();
        if !self.has_begun() {
            begun.await;
        }
    }
}
