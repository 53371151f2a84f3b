//! Keeps an engine running: starts it, warms it up, watches its lanes, and restarts it when it dies.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cudock_engine::{Engine, EngineError, ExitCheck, Lane, RowCheck, check_rows};
use cudock_server::Log;
use cudock_tensor::Signature;

use super::health::ModelHealth;
use super::lane::LaneContext;
use super::queue::Queue;
use super::repository::ModelFile;
use crate::settings::{ModelSettings, StartEngine};

/// What all engines of a model share.
pub(crate) struct EngineManager {
    pub(crate) file: ModelFile,
    pub(crate) settings: ModelSettings,
    pub(crate) start: StartEngine,
    pub(crate) queue: Arc<Queue>,
    pub(crate) health: Arc<ModelHealth>,
    pub(crate) log: Log,
}

/// First and longest pause between attempts to start an engine.
const RESTART_BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Interval at which an engine's process is checked.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) struct WarmEngine {
    engine: Box<dyn Engine>,
    lanes: Vec<Box<dyn Lane>>,
}

impl EngineManager {
    /// Starts an engine and runs each batch size once. The first engine determines whether requests can share batches;
    /// its successors follow.
    pub(crate) fn start(
        &self,
        gpu: u32,
        first: Option<&Signature>,
    ) -> Result<(WarmEngine, Signature), EngineError> {
        let mut engine = (self.start)(&self.settings.engine_on(gpu, &self.file.path))?;
        let mut signature = engine.signature().clone();
        let mut lanes = engine.take_lanes();
        signature.batched = match first {
            Some(first) => first.batched,
            None => self.can_share_batches(&mut lanes, &signature)?,
        };
        let mut sizes = self.settings.batcher.preferred_rows.clone();
        sizes.extend([1, self.settings.batcher.max_rows]);
        sizes.sort_unstable();
        sizes.dedup();
        let limit = self.settings.engine_timeout;
        for lane in &mut lanes {
            cudock_engine::warm_up(lane.as_mut(), &signature, &sizes, limit)?;
        }
        // The second run of each size is the first one at full speed. Rows with dynamic dimensions are warmed up with a
        // size of one, so their times say nothing.
        let closed = signature.inputs.iter().all(|spec| spec.shape.iter().skip(1).all(Option::is_some));
        let mut times = Vec::new();
        if let Some(lane) = lanes.first_mut().filter(|_| closed && signature.batched) {
            for &rows in &sizes {
                let begun = Instant::now();
                cudock_engine::warm_up(lane.as_mut(), &signature, &[rows], limit)?;
                times.push((rows, begun.elapsed()));
            }
        }
        self.queue.record_batch_times(&times);
        Ok((WarmEngine { engine, lanes }, signature))
    }

    /// Whether requests can share a batch: as configured, else if the shapes allow it and a row's result does not
    /// depend on the other rows.
    fn can_share_batches(
        &self,
        lanes: &mut [Box<dyn Lane>],
        signature: &Signature,
    ) -> Result<bool, EngineError> {
        let wanted = self.settings.batch.unwrap_or(signature.batched);
        let has_rows = wanted && signature.batched && self.settings.batcher.max_rows > 1;
        let Some(lane) = lanes.first_mut().filter(|_| has_rows) else { return Ok(wanted) };
        let check = check_rows(lane.as_mut(), signature, self.settings.engine_timeout)?;
        let RowCheck::Dependent(reason) = check else { return Ok(wanted) };
        let shares = self.settings.batch == Some(true);
        let effect = if shares {
            "requests share batches nevertheless because of `batch = true`"
        } else {
            "each request runs alone"
        };
        self.log_event("rows_depend", &[("reason", &reason), ("effect", effect)]);
        Ok(shares)
    }

    fn log_event(&self, name: &str, fields: &[(&str, &str)]) {
        let model = [("model", &*self.file.name), ("version", &self.file.version)];
        self.log.event(name, &[&model[..], fields].concat());
    }

    /// Runs an engine and its successors on a GPU until the queue is closed and empty.
    pub(crate) fn run_until_closed(
        self: &Arc<Self>,
        gpu: u32,
        mut warm: WarmEngine,
        signature: &Arc<Signature>,
        padding: &Arc<Vec<Vec<u8>>>,
    ) {
        while let Some(failure) = self.run(warm, signature, padding) {
            let failure = failure.to_string();
            self.queue.metrics.restarted();
            self.health.engine_lost(gpu, &failure);
            self.log_event("engine_lost", &[("error", &failure)]);
            let lost = Instant::now();
            let Some(next) = self.restart(gpu, signature) else { return };
            warm = next;
            self.log_event("engine_replaced", &[("after_ms", &lost.elapsed().as_millis().to_string())]);
        }
    }

    /// Runs the lanes of one engine; returns the error that ended it, or `None` if there is no more work.
    fn run(
        self: &Arc<Self>,
        warm: WarmEngine,
        signature: &Arc<Signature>,
        padding: &Arc<Vec<Vec<u8>>>,
    ) -> Option<EngineError> {
        let WarmEngine { engine, lanes } = warm;
        let number = self.queue.engine_started();
        self.health.engine_started(engine.device(), engine.process());
        let failures = thread::scope(|scope| {
            let watcher = engine
                .exit_check()
                .map(|has_exited| scope.spawn(move || self.watch_for_exit(&has_exited, number)));
            let handles: Vec<_> = lanes
                .into_iter()
                .map(|mut lane| {
                    let context = LaneContext {
                        queue: Arc::clone(&self.queue),
                        signature: Arc::clone(signature),
                        pad_sizes: self.settings.pad_sizes.clone(),
                        padding: Arc::clone(padding),
                        limit: self.settings.engine_timeout,
                        engine: number,
                    };
                    scope.spawn(move || {
                        let result = context.run_batches(lane.as_mut());
                        if result.is_err() {
                            context.queue.engine_ended(number);
                        }
                        result.err()
                    })
                })
                .collect();
            let mut failures: Vec<_> =
                handles.into_iter().filter_map(|handle| handle.join().ok().flatten()).collect();
            self.queue.engine_ended(number);
            if let Some(watcher) = watcher {
                watcher.thread().unpark();
                failures.extend(watcher.join().ok().flatten());
            }
            failures
        });
        failures.into_iter().next()
    }

    /// Notices that an idle engine died, and ends its lanes.
    fn watch_for_exit(&self, has_exited: &ExitCheck, number: u64) -> Option<EngineError> {
        while self.queue.has_engine(number) {
            if has_exited() {
                self.queue.engine_ended(number);
                return Some(EngineError::Died("while it was idle".to_owned()));
            }
            thread::park_timeout(EXIT_CHECK_INTERVAL);
        }
        None
    }

    /// Retries until an engine runs again; `None` once the model is closing.
    fn restart(&self, gpu: u32, signature: &Signature) -> Option<WarmEngine> {
        let mut pause = RESTART_BACKOFF.0;
        loop {
            let reason = match self.start(gpu, Some(signature)) {
                Ok((warm, found)) if found == *signature => return Some(warm),
                Ok(_) => "the inputs or outputs of the model file have changed; reload the model".to_owned(),
                Err(error) => error.to_string(),
            };
            self.health.engine_lost(gpu, &reason);
            self.log.event("engine_not_started", &[("model", &self.file.name), ("error", &reason)]);
            if self.health.is_closing() {
                self.queue.fail_all(&crate::ServeError::NotReady { name: self.file.name.clone(), reason });
                return None;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(RESTART_BACKOFF.1);
        }
    }
}
