//! How many descriptors a forwarder has, and who may have them.
//!
//! Without this, a forwarder at its limit could take connections for which it has no second socket, and none of them
//! would ever end. So a connection is only carried once both its sockets can be had; the others wait in the kernel's
//! queue, as they would for a busy server.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// For what the process needs besides: standard streams, the runtime, files of the program around it.
const RESERVE: usize = 32;

/// Enough for everything, where the system sets no limit.
const PLENTY: usize = 1 << 20;

/// Descriptors that may be opened. Copies share them.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<Semaphore>);

/// Descriptors that are in use, until this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    _counts_while_it_lives: OwnedSemaphorePermit,
}

impl Budget {
    /// What is left of a limit on open files with so many listeners, each of which may have a connection waiting. It
    /// is never less than one connection.
    pub(super) fn new(limit: Option<u64>, listeners: usize) -> Self {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(PLENTY);
        let left = limit.min(PLENTY).saturating_sub(RESERVE).saturating_sub(listeners.saturating_mul(2));
        Self(Arc::new(Semaphore::new(left.max(2))))
    }

    /// Waits for so many.
    pub(super) async fn wait_for(&self, count: u32) -> Option<Share> {
        self.0.clone().acquire_many_owned(count).await.ok().map(Share::of)
    }

    /// So many, if they can be had at once.
    pub(super) fn take(&self, count: u32) -> Option<Share> {
        self.0.clone().try_acquire_many_owned(count).ok().map(Share::of)
    }
}

impl Share {
    fn of(permit: OwnedSemaphorePermit) -> Self {
        Self { _counts_while_it_lives: permit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back_and_one_connection_always_fits() {
        let budget = Budget::new(Some(0), 1000);
        let both = budget.take(2);
        assert!(both.is_some());
        assert!(budget.take(1).is_none());
        drop(both);
        assert!(budget.take(2).is_some());
    }

    #[test]
    fn no_limit_is_plenty() {
        assert!(Budget::new(None, 1).take(100_000).is_some());
        assert!(Budget::new(Some(u64::MAX), usize::MAX).take(2).is_some());
    }
}
