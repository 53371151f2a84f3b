//! The budget of file descriptors of a forwarder.
//!
//! Without it, a forwarder at its limit could accept connections for which it cannot open a second socket, and would never
//! recover. So a connection is accepted only once both sockets are available; others wait in the kernel's queue, as for a
//! busy server.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Descriptors for everything else: standard streams, the runtime, files of the program.
const RESERVE: usize = 32;

/// The budget if the system sets no limit.
const UNLIMITED: usize = 1 << 20;

/// Descriptors that may be opened. Clones share the budget.
#[derive(Clone, Debug)]
pub(super) struct DescriptorBudget(Arc<Semaphore>);

/// Descriptors in use, returned on drop.
pub(super) type DescriptorPermit = OwnedSemaphorePermit;

impl DescriptorBudget {
    /// The budget for a limit on open files and a number of listeners, each of which may have a connection waiting. It always
    /// suffices for one connection.
    pub(super) fn new(limit: Option<u64>, listeners: usize) -> Self {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(UNLIMITED);
        let left = limit.min(UNLIMITED).saturating_sub(RESERVE).saturating_sub(listeners.saturating_mul(2));
        Self(Arc::new(Semaphore::new(left.max(2))))
    }

    /// Waits until `count` descriptors are available.
    pub(super) async fn acquire(&self, count: u32) -> Option<DescriptorPermit> {
        self.0.clone().acquire_many_owned(count).await.ok()
    }

    /// Acquires `count` descriptors if they are available now.
    pub(super) fn try_acquire(&self, count: u32) -> Option<DescriptorPermit> {
        self.0.clone().try_acquire_many_owned(count).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_returned_and_one_connection_always_fits() {
        let budget = DescriptorBudget::new(Some(0), 1000);
        let both = budget.try_acquire(2);
        assert!(both.is_some());
        assert!(budget.try_acquire(1).is_none());
        drop(both);
        assert!(budget.try_acquire(2).is_some());
    }

    #[test]
    fn without_a_limit_the_budget_is_large() {
        assert!(DescriptorBudget::new(None, 1).try_acquire(100_000).is_some());
        assert!(DescriptorBudget::new(Some(u64::MAX), usize::MAX).try_acquire(2).is_some());
    }
}
