//! Who unpacks when: a thread for each layer, as many at work as there are cores, the largest layer first.
//!
//! A thread that needs the layers below gives its turn away while it waits, so that they can be finished; it waits only
//! for lower ones, so that no two wait for each other.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::error::UnpackError;
use super::shelf::Held;

/// Layers that are fetched at the same time: registries give each connection only so much.
const FETCHES: usize = 4;

/// What all threads know.
pub(super) struct Board {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    layers: Vec<Option<Arc<Held>>>,
    turns: usize,
    fetches: usize,
    /// Who waits for a turn, the largest first.
    waiting: BTreeSet<(Reverse<u64>, usize)>,
    failure: Option<UnpackError>,
}

/// Another thread has failed, and nothing more is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopped;

impl Board {
    pub(super) fn new(layers: Vec<Option<Arc<Held>>>, turns: usize) -> Self {
        let (waiting, failure) = (BTreeSet::new(), None);
        let state = State { layers, turns: turns.max(1), fetches: FETCHES, waiting, failure };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready` gives something, or all is over.
    fn wait_for<T>(&self, mut ready: impl FnMut(&mut State) -> Option<T>) -> Result<T, Stopped> {
        let mut state = self.state();
        loop {
            if state.failure.is_some() {
                return Err(Stopped);
            }
            if let Some(result) = ready(&mut state) {
                return Ok(result);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Whether all is over.
    pub(super) fn is_stopped(&self) -> bool {
        self.state().failure.is_some()
    }

    /// Waits for the right to work on a layer of this size.
    pub(super) fn turn(&self, index: usize, size: u64) -> Result<Turn<'_>, Stopped> {
        let mine = (Reverse(size), index);
        self.state().waiting.insert(mine);
        let taken = self.wait_for(|state| {
            let is_next = state.turns > 0 && state.waiting.first() == Some(&mine);
            is_next.then(|| {
                state.turns -= 1;
                state.waiting.remove(&mine);
            })
        });
        // Whoever is next may go on as well.
        self.changed.notify_all();
        taken.map(|()| Turn { board: self, index, size, is_ours: true })
    }

    /// Runs `fetch` when few enough others do.
    pub(super) fn fetch<T>(&self, fetch: impl FnOnce() -> T) -> Result<T, Stopped> {
        self.wait_for(|state| (state.fetches > 0).then(|| state.fetches -= 1))?;
        let result = fetch();
        self.change(|state| state.fetches += 1);
        Ok(result)
    }

    /// Waits for all layers below one, and gives them with the lowest first.
    pub(super) fn below(&self, index: usize) -> Result<Vec<Arc<Held>>, Stopped> {
        self.wait_for(|state| state.layers.iter().take(index).cloned().collect())
    }

    /// Waits for one layer.
    pub(super) fn layer(&self, index: usize) -> Result<Arc<Held>, Stopped> {
        self.wait_for(|state| state.layers.get(index).cloned().flatten())
    }

    pub(super) fn done(&self, index: usize, held: Held) {
        self.change(|state| {
            if let Some(layer) = state.layers.get_mut(index) {
                *layer = Some(Arc::new(held));
            }
        });
    }

    /// Ends it for all. The first failure is the one that counts.
    pub(super) fn failed(&self, error: UnpackError) {
        self.change(|state| {
            state.failure.get_or_insert(error);
        });
    }

    /// What came of it, when all threads have ended.
    pub(super) fn result(self) -> Result<Vec<Arc<Held>>, UnpackError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.failure {
            Some(error) => Err(error),
            None => Ok(state.layers.into_iter().flatten().collect()),
        }
    }
}

/// The right to work.
pub(super) struct Turn<'b> {
    board: &'b Board,
    index: usize,
    size: u64,
    is_ours: bool,
}

impl Turn<'_> {
    /// Waits for all layers below, while others work.
    pub(super) fn below(&mut self) -> Result<Vec<Arc<Held>>, Stopped> {
        self.give_back();
        let below = self.board.below(self.index)?;
        self.board.turn(self.index, self.size)?.is_ours = false;
        self.is_ours = true;
        Ok(below)
    }

    fn give_back(&mut self) {
        if std::mem::take(&mut self.is_ours) {
            self.board.change(|state| state.turns += 1);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}
