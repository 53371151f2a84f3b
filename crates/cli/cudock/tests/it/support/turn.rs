//! Keeps tests that judge speed or memory apart from tests that load the machine.

use std::cell::Cell;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static TURN: RwLock<()> = RwLock::new(());

thread_local! {
    /// How many turns this thread holds. A test may need several fixtures, and the lock cannot be taken twice.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// The right to load the machine. Fixtures of containers and servers hold one for as long as they live.
#[derive(Debug)]
pub struct Turn {
    _lock: Option<Lock>,
}

#[allow(dead_code, reason = "held, not read")]
#[derive(Debug)]
enum Lock {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

impl Turn {
    /// Beside other tests.
    pub fn shared() -> Self {
        Self::take(|| Lock::Shared(TURN.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// While no other test holds a turn.
    pub fn alone() -> Self {
        assert_eq!(HELD.get(), 0, "a test cannot wait for its own turn to end");
        Self::take(|| Lock::Alone(TURN.write().unwrap_or_else(PoisonError::into_inner)))
    }

    fn take(lock: impl FnOnce() -> Lock) -> Self {
        let lock = (HELD.get() == 0).then(lock);
        HELD.set(HELD.get() + 1);
        Self { _lock: lock }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}
