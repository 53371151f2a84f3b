//! Cancels a batch that no client waits for.

use std::sync::{Arc, Mutex};

use cudock_base::lock;
use ort::session::RunOptions;

/// Cancels batches of one lane, by their growing numbers, from another thread.
#[derive(Clone, Default)]
pub(crate) struct Canceler {
    state: Arc<Mutex<CancelState>>,
}

#[derive(Default)]
struct CancelState {
    /// The current or last batch.
    batch: u64,
    /// The newest canceled batch.
    canceled: u64,
    /// Terminates the running batch.
    running: Option<Arc<RunOptions>>,
}

impl CancelState {
    /// Whether the current batch was canceled.
    fn is_canceled(&self) -> bool {
        self.canceled >= self.batch && self.batch > 0
    }
}

impl Canceler {
    pub(crate) fn begin(&self, batch: u64) {
        lock(&self.state).batch = batch;
    }

    /// Cancels a batch: now if it runs, or as soon as it starts. A finished batch is ignored.
    pub(crate) fn cancel(&self, batch: u64) {
        let mut state = lock(&self.state);
        state.canceled = state.canceled.max(batch);
        if let Some(options) = state.running.as_ref().filter(|_| state.batch == batch) {
            // The run then fails, which is the reply.
            let _ = options.terminate();
        }
    }

    /// Runs the batch, unless it was canceled before.
    pub(crate) fn run<T>(
        &self,
        options: &Arc<RunOptions>,
        run: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        {
            let mut state = lock(&self.state);
            if state.is_canceled() {
                return Err("the batch was canceled".to_owned());
            }
            state.running = Some(Arc::clone(options));
        }
        let result = run();
        let mut state = lock(&self.state);
        state.running = None;
        if state.is_canceled() {
            // The next batch of the same shape uses the same options.
            options.unterminate().map_err(|error| error.to_string())?;
        }
        result
    }
}
