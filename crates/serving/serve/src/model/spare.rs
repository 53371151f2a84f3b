//! An engine that waits to replace another one, while engines crash often.

use std::sync::Mutex;

use cudock_base::lock;

use super::warm_engine::WarmEngine;

pub(crate) struct SpareEngine {
    /// Whether there may be one.
    pub(crate) is_allowed: bool,
    state: Mutex<SpareState>,
}

enum SpareState {
    None,
    Starting,
    Ready(WarmEngine),
}

impl SpareEngine {
    pub(crate) fn new(is_allowed: bool) -> Self {
        Self { is_allowed, state: Mutex::new(SpareState::None) }
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(*lock(&self.state), SpareState::Ready(_))
    }

    /// Whether the caller is to start one.
    pub(crate) fn begin(&self) -> bool {
        let mut state = lock(&self.state);
        let is_missing = matches!(*state, SpareState::None);
        if is_missing {
            *state = SpareState::Starting;
        }
        is_missing
    }

    /// Stores the one that was started, if it could be.
    pub(crate) fn set(&self, engine: Option<WarmEngine>) {
        *lock(&self.state) = engine.map_or(SpareState::None, SpareState::Ready);
    }

    /// The engine, if it is ready and its process is running.
    pub(crate) fn take(&self) -> Option<WarmEngine> {
        let mut state = lock(&self.state);
        if !matches!(*state, SpareState::Ready(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, SpareState::None) {
            SpareState::Ready(engine) => Some(engine).filter(WarmEngine::is_running),
            SpareState::None | SpareState::Starting => None,
        }
    }
}
