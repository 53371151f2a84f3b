//! Stopping a batch that nobody waits for any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ort::session::RunOptions;

/// Stops batches of one lane from another thread. Batches are counted from one, on both sides of the lane's socket.
#[derive(Clone, Default)]
pub(crate) struct Canceller {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The batch that runs or ran last.
    batch: u64,
    /// The newest batch that was to be stopped.
    cancelled: u64,
    /// What stops the batch that runs.
    running: Option<Arc<RunOptions>>,
}

/// A request to stop a batch, on the control stream.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Cancel {
    pub(crate) lane: usize,
    pub(crate) batch: u64,
}

impl Canceller {
    /// Counts the next batch.
    pub(crate) fn next_batch(&self) {
        self.state().batch += 1;
    }

    /// Stops a batch: now if it runs, or as soon as it would. A batch that has ended is none of its business.
    pub(crate) fn cancel(&self, batch: u64) {
        let mut state = self.state();
        state.cancelled = state.cancelled.max(batch);
        if let Some(options) = state.running.as_ref().filter(|_| state.batch == batch) {
            // The run then ends with an error, which is its answer.
            let _ = options.terminate();
        }
    }

    /// Runs the batch, unless it was stopped before it began.
    pub(crate) fn run<T>(
        &self,
        options: &Arc<RunOptions>,
        run: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        {
            let mut state = self.state();
            if state.cancelled >= state.batch && state.batch > 0 {
                return Err("the batch was cancelled".to_owned());
            }
            state.running = Some(Arc::clone(options));
        }
        let outcome = run();
        let mut state = self.state();
        state.running = None;
        if state.cancelled >= state.batch && state.batch > 0 {
            // The options are those of the next batch of the same shape.
            options.unterminate().map_err(|error| error.to_string())?;
        }
        outcome
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
