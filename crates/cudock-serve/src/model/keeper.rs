//! Keeps an engine running: starts it, warms it, watches its lanes, and starts it again when it has died.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cudock_engine::{Engine, EngineError, ExitCheck, Lane, RowCheck, check_rows};
use cudock_tensor::Signature;

use super::lane::LaneContext;
use super::queue::Queue;
use super::state::ModelState;
use crate::log::Log;
use crate::settings::{ModelSettings, StartEngine};

/// What all engines of a model share.
pub(crate) struct Keeper {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) file: PathBuf,
    pub(crate) settings: ModelSettings,
    pub(crate) start: StartEngine,
    pub(crate) queue: Arc<Queue>,
    pub(crate) state: Arc<ModelState>,
    pub(crate) log: Log,
}

/// First and longest pause between attempts to start an engine that will not.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How often an engine's process is looked after.
const LOOK_AFTER_ENGINE: Duration = Duration::from_millis(200);

/// A model whose lanes are warm.
pub(crate) struct Warm {
    engine: Box<dyn Engine>,
    lanes: Vec<Box<dyn Lane>>,
}

impl Keeper {
    /// Starts an engine and runs it once for each size it will meet. Whether rows share batches is found out by the
    /// first engine; its successors keep to that.
    pub(crate) fn start(
        &self,
        gpu: u32,
        first: Option<&Signature>,
    ) -> Result<(Warm, Signature), EngineError> {
        let mut engine = (self.start)(&self.settings.engine(self.file.clone(), gpu))?;
        let mut signature = engine.signature().clone();
        let mut lanes = engine.take_lanes();
        if let Some(first) = first {
            signature.batched = first.batched;
        } else {
            signature.batched = self.rows_share_batches(&mut lanes, &signature)?;
        }
        let mut sizes = self.settings.preferred.clone();
        sizes.extend([1, self.settings.max_batch]);
        sizes.sort_unstable();
        sizes.dedup();
        let limit = self.settings.engine_timeout;
        for lane in &mut lanes {
            cudock_engine::warm(lane.as_mut(), &signature, &sizes, limit)?;
        }
        // The second run of each size is the first that shows its speed; rows of a length of one would not.
        let closed = signature.inputs.iter().all(|spec| spec.shape.iter().skip(1).all(Option::is_some));
        let mut times = Vec::new();
        if let Some(lane) = lanes.first_mut().filter(|_| closed && signature.batched) {
            for &rows in &sizes {
                let begun = Instant::now();
                cudock_engine::warm(lane.as_mut(), &signature, &[rows], limit)?;
                times.push((rows, begun.elapsed()));
            }
        }
        self.queue.teach(&times);
        Ok((Warm { engine, lanes }, signature))
    }

    /// Whether rows of different requests may share a batch: as the settings say, else if the shapes allow it and a row
    /// does not change with the others of its batch.
    fn rows_share_batches(
        &self,
        lanes: &mut [Box<dyn Lane>],
        signature: &Signature,
    ) -> Result<bool, EngineError> {
        let wanted = self.settings.batch.unwrap_or(signature.batched);
        let lane = lanes.first_mut().filter(|_| wanted && signature.batched && self.settings.max_batch > 1);
        let Some(lane) = lane else { return Ok(wanted) };
        let RowCheck::Dependent(reason) = check_rows(lane.as_mut(), signature, self.settings.engine_timeout)?
        else {
            return Ok(wanted);
        };
        let shares = self.settings.batch == Some(true);
        let effect = if shares {
            "requests share batches all the same, as `batch = true` says"
        } else {
            "each request runs alone"
        };
        self.log.event(
            "rows_depend",
            &[("model", &self.name), ("version", &self.version), ("reason", &reason), ("effect", effect)],
        );
        Ok(shares)
    }

    /// Runs an engine and its successors on a GPU until the queue is closed and empty.
    pub(crate) fn keep(self: &Arc<Self>, gpu: u32, mut warm: Warm, signature: &Arc<Signature>) {
        loop {
            let failure = self.run(warm, signature);
            let Some(failure) = failure else { return };
            self.queue.metrics.restarted();
            self.state.lost(gpu, &failure.to_string());
            self.log.event(
                "engine_lost",
                &[("model", &self.name), ("version", &self.version), ("error", &failure.to_string())],
            );
            let lost = Instant::now();
            warm = match self.start_again(gpu, signature) {
                Some(warm) => warm,
                None => return,
            };
            let took = lost.elapsed().as_millis().to_string();
            self.log.event(
                "engine_replaced",
                &[("model", &self.name), ("version", &self.version), ("after_ms", &took)],
            );
        }
    }

    /// Runs the lanes of one engine; the error that ended it, or none if there is no more work.
    fn run(self: &Arc<Self>, warm: Warm, signature: &Arc<Signature>) -> Option<EngineError> {
        let Warm { engine, lanes } = warm;
        let number = self.queue.engine_started();
        self.state.runs(engine.device(), engine.process());
        let failures = thread::scope(|scope| {
            let guard =
                engine.exit_check().map(|has_exited| scope.spawn(move || self.guard(&has_exited, number)));
            let handles: Vec<_> = lanes
                .into_iter()
                .map(|mut lane| {
                    let context = LaneContext {
                        queue: Arc::clone(&self.queue),
                        signature: Arc::clone(signature),
                        pad_sizes: self.settings.pad_sizes.clone(),
                        limit: self.settings.engine_timeout,
                        engine: number,
                    };
                    scope.spawn(move || {
                        let outcome = context.work(lane.as_mut());
                        if outcome.is_err() {
                            context.queue.engine_ended(number);
                        }
                        outcome.err()
                    })
                })
                .collect();
            let mut failures: Vec<_> =
                handles.into_iter().filter_map(|handle| handle.join().ok().flatten()).collect();
            self.queue.engine_ended(number);
            if let Some(guard) = guard {
                guard.thread().unpark();
                failures.extend(guard.join().ok().flatten());
            }
            failures
        });
        self.queue.engine_ended(number);
        failures.into_iter().next()
    }

    /// Notices that an engine died while nothing was asked of it, and sends its lanes home.
    fn guard(&self, has_exited: &ExitCheck, number: u64) -> Option<EngineError> {
        while self.queue.has_engine(number) {
            if has_exited() {
                self.queue.engine_ended(number);
                return Some(EngineError::Died("while it was idle".to_owned()));
            }
            thread::park_timeout(LOOK_AFTER_ENGINE);
        }
        None
    }

    /// Tries until an engine runs again; none once there is nothing left to run it for.
    fn start_again(&self, gpu: u32, signature: &Signature) -> Option<Warm> {
        let mut pause = PAUSES.0;
        loop {
            let reason = match self.start(gpu, Some(signature)) {
                Ok((warm, found)) if found == *signature => return Some(warm),
                Ok(_) => "the model file has changed what it takes or gives; reload the model".to_owned(),
                Err(error) => error.to_string(),
            };
            self.state.lost(gpu, &reason);
            self.log.event("engine_not_started", &[("model", &self.name), ("error", &reason)]);
            if self.state.is_closing() {
                self.queue.fail_all(&crate::ServeError::NotReady { name: self.name.clone(), reason });
                return None;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}
