//! State shared by requests and the thread that loads models: which requests wait for which model,
//! and the results of loads.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudock_base::lock;
use cudock_base::text::format::bytes;
use cudock_server::HttpRejection;
use tokio::sync::watch;

use super::residency::{Refusal, Residency};
use crate::ServeError;
use crate::model::repository::ModelId;

/// Maximum number of requests that wait for the first load of one model. Later loads are limited by
/// the model's queue.
const MAX_FIRST_REQUESTS: usize = 4096;

/// Delay of a retry if that many requests wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) struct Loader {
    residency: Mutex<Residency<ModelId>>,
    first_requests: Mutex<BTreeMap<ModelId, WaitingRequests>>,
    is_woken: Mutex<bool>,
    wake_up: Condvar,
    /// Changes whenever requests that wait for a first load have to look again.
    outcome: watch::Sender<()>,
}

struct WaitingRequests {
    count: usize,
    /// Arrival of the first of them.
    since: Instant,
}

impl Loader {
    pub(crate) fn new(budget: Option<u64>) -> Self {
        Self {
            residency: Mutex::new(Residency::new(budget)),
            first_requests: Mutex::default(),
            is_woken: Mutex::default(),
            wake_up: Condvar::new(),
            outcome: watch::Sender::new(()),
        }
    }

    pub(crate) fn residency(&self) -> MutexGuard<'_, Residency<ModelId>> {
        lock(&self.residency)
    }

    /// Fails if a model that is not loaded cannot be loaded for a request now.
    pub(crate) fn check(&self, id: &ModelId) -> Result<(), ServeError> {
        match self.residency().refusal(id, Instant::now()) {
            None => Ok(()),
            Some(refusal) => Err(refusal_error(refusal, &id.0)),
        }
    }

    /// Makes the thread that loads models look for work.
    pub(crate) fn wake(&self) {
        *lock(&self.is_woken) = true;
        self.wake_up.notify_all();
    }

    /// Waits until there may be work, but not longer than until `limit`.
    pub(crate) fn wait(&self, limit: Instant) {
        let mut is_woken = lock(&self.is_woken);
        while !*is_woken {
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.wake_up.wait_timeout(is_woken, left);
            is_woken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *is_woken = false;
    }

    /// Reports to waiting requests that a load has succeeded or failed, or that a model is gone.
    pub(crate) fn announce(&self) {
        self.outcome.send_replace(());
    }

    pub(crate) fn outcomes(&self) -> watch::Receiver<()> {
        self.outcome.subscribe()
    }

    /// Registers a request for a model that was never loaded.
    pub(crate) fn register(self: &Arc<Self>, id: &ModelId) -> Result<FirstRequest, ServeError> {
        self.check(id)?;
        let mut requests = lock(&self.first_requests);
        let waiting =
            requests.entry(id.clone()).or_insert_with(|| WaitingRequests { count: 0, since: Instant::now() });
        if waiting.count == MAX_FIRST_REQUESTS {
            return Err(HttpRejection::Overloaded { retry_after: RETRY_AFTER }.into());
        }
        waiting.count += 1;
        drop(requests);
        self.wake();
        Ok(FirstRequest { loader: Arc::clone(self), id: id.clone() })
    }

    /// Arrival of the oldest request that caused the first load of a model and is not finished.
    pub(crate) fn first_request(&self, id: &ModelId) -> Option<Instant> {
        lock(&self.first_requests).get(id).map(|waiting| waiting.since)
    }
}

/// A request that caused the first load of a model. The model stays loaded until it is dropped.
pub(crate) struct FirstRequest {
    loader: Arc<Loader>,
    id: ModelId,
}

impl Drop for FirstRequest {
    fn drop(&mut self) {
        let mut requests = lock(&self.loader.first_requests);
        if let Some(waiting) = requests.get_mut(&self.id) {
            waiting.count -= 1;
            if waiting.count == 0 {
                requests.remove(&self.id);
            }
        }
    }
}

fn refusal_error(refusal: Refusal, name: &str) -> ServeError {
    let (reason, retry_after) = match refusal {
        Refusal::Failed { reason, retry_after } => (reason, Some(retry_after)),
        Refusal::TooLarge { needed, available, budget } => {
            let (needed, kept) = (bytes(needed), budget - available);
            let kept = if kept > 0 {
                format!(", of which models that are kept loaded use {}", bytes(kept))
            } else {
                String::new()
            };
            (format!("it needs {needed} and --model-memory is {}{kept}", bytes(budget)), None)
        }
        Refusal::Unloaded => {
            (format!("it was unloaded; load it with POST /v2/repository/models/{name}/load"), None)
        }
    };
    ServeError::NotLoaded { name: name.to_owned(), reason, retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_sizes_and_what_to_do() {
        for (refusal, reason) in [
            (
                Refusal::TooLarge { needed: 5_200_000_000, available: 4_000_000_000, budget: 4_000_000_000 },
                "it needs 5.2 GB and --model-memory is 4 GB",
            ),
            (
                Refusal::TooLarge { needed: 2_000_000_000, available: 1_500_000_000, budget: 4_000_000_000 },
                "it needs 2 GB and --model-memory is 4 GB, of which models that are kept loaded use 2.5 GB",
            ),
            (Refusal::Unloaded, "it was unloaded; load it with POST /v2/repository/models/m/load"),
        ] {
            let error = refusal_error(refusal, "m");
            assert_eq!(error.to_string(), format!("model `m` is not loaded: {reason}"));
            assert_eq!(error.retry_after(), None);
        }
        let failed = Refusal::Failed { reason: "no such file".to_owned(), retry_after: RETRY_AFTER };
        assert_eq!(refusal_error(failed, "m").retry_after(), Some(RETRY_AFTER));
    }
}
