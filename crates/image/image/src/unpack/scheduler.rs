//! Schedules layers: one thread per layer, as many running as there are cores, the largest layer first.
//!
//! A thread that needs the layers below releases its slot while it waits, so that they can finish. Threads wait only for
//! lower layers, so there are no deadlocks.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::error::UnpackError;
use super::layer_dir::LockedLayer;

/// Parallel downloads: registries limit the rate of each connection.
const FETCHES: usize = 4;

/// State shared by all threads.
pub(super) struct Scheduler {
    state: Mutex<SchedulerState>,
    changed: Condvar,
}

struct SchedulerState {
    layers: Vec<Option<Arc<LockedLayer>>>,
    slots: usize,
    fetches: usize,
    /// Layers waiting for a slot, the largest first.
    waiting: BTreeSet<(Reverse<u64>, usize)>,
    failure: Option<UnpackError>,
}

/// Another thread failed, so unpacking stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopped;

impl Scheduler {
    pub(super) fn new(layers: Vec<Option<Arc<LockedLayer>>>, slots: usize) -> Self {
        let (waiting, failure) = (BTreeSet::new(), None);
        let state = SchedulerState { layers, slots: slots.max(1), fetches: FETCHES, waiting, failure };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, SchedulerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready` returns a value or another thread fails.
    fn wait_for<T>(&self, mut ready: impl FnMut(&mut SchedulerState) -> Option<T>) -> Result<T, Stopped> {
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

    fn change(&self, change: impl FnOnce(&mut SchedulerState)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Whether another thread failed.
    pub(super) fn is_stopped(&self) -> bool {
        self.state().failure.is_some()
    }

    /// Waits for a slot to unpack a layer of this size.
    pub(super) fn work_slot(&self, index: usize, size: u64) -> Result<WorkSlot<'_>, Stopped> {
        let mine = (Reverse(size), index);
        self.state().waiting.insert(mine);
        let acquired = self.wait_for(|state| {
            let is_next = state.slots > 0 && state.waiting.first() == Some(&mine);
            is_next.then(|| {
                state.slots -= 1;
                state.waiting.remove(&mine);
            })
        });
        // The next thread in line may also be able to start.
        self.changed.notify_all();
        acquired.map(|()| WorkSlot { scheduler: self, index, size, is_held: true })
    }

    /// Runs `fetch` once fewer than [`FETCHES`] downloads are running.
    pub(super) fn fetch<T>(&self, fetch: impl FnOnce() -> T) -> Result<T, Stopped> {
        self.wait_for(|state| (state.fetches > 0).then(|| state.fetches -= 1))?;
        let result = fetch();
        self.change(|state| state.fetches += 1);
        Ok(result)
    }

    /// Waits for all layers below `index`; returns them lowest first.
    pub(super) fn below(&self, index: usize) -> Result<Vec<Arc<LockedLayer>>, Stopped> {
        self.wait_for(|state| state.layers.iter().take(index).cloned().collect())
    }

    pub(super) fn layer(&self, index: usize) -> Result<Arc<LockedLayer>, Stopped> {
        self.wait_for(|state| state.layers.get(index).cloned().flatten())
    }

    pub(super) fn finish(&self, index: usize, held: LockedLayer) {
        self.change(|state| {
            if let Some(layer) = state.layers.get_mut(index) {
                *layer = Some(Arc::new(held));
            }
        });
    }

    /// Stops all threads. Only the first error is kept.
    pub(super) fn fail(&self, error: UnpackError) {
        self.change(|state| {
            state.failure.get_or_insert(error);
        });
    }

    /// The unpacked layers, once all threads have ended.
    pub(super) fn result(self) -> Result<Vec<Arc<LockedLayer>>, UnpackError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.failure {
            Some(error) => Err(error),
            None => Ok(state.layers.into_iter().flatten().collect()),
        }
    }
}

/// A slot to work in, released on drop.
pub(super) struct WorkSlot<'b> {
    scheduler: &'b Scheduler,
    index: usize,
    size: u64,
    is_held: bool,
}

impl WorkSlot<'_> {
    /// Waits for all layers below, without occupying the slot.
    pub(super) fn below(&mut self) -> Result<Vec<Arc<LockedLayer>>, Stopped> {
        self.release();
        let below = self.scheduler.below(self.index)?;
        self.scheduler.work_slot(self.index, self.size)?.is_held = false;
        self.is_held = true;
        Ok(below)
    }

    fn release(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.scheduler.change(|state| state.slots += 1);
        }
    }
}

impl Drop for WorkSlot<'_> {
    fn drop(&mut self) {
        self.release();
    }
}
