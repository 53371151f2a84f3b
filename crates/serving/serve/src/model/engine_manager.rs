//! Keeps an engine running: starts it, warms it up, watches its lanes, and restarts it when it dies or takes too much
//! memory.

use std::sync::Arc;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use cudock_engine::{
    DeviceInfo, EngineError, ExitCheck, Lane, OutputSink, RowCheck, check_rows, skip_reasons,
};
use cudock_server::{Budget, Log};
use cudock_tensor::Signature;

use super::health::ModelHealth;
use super::lane::LaneContext;
use super::queue::Queue;
use super::repository::ModelFile;
use super::spare::SpareEngine;
use super::warm_engine::WarmEngine;
use crate::ServeError;
use crate::proc::status_bytes;
use crate::settings::{ModelSettings, StartEngine};

/// State shared by all engines of a model.
pub(crate) struct EngineManager {
    pub(crate) file: ModelFile,
    pub(crate) settings: ModelSettings,
    pub(crate) start: StartEngine,
    pub(crate) queue: Arc<Queue>,
    pub(crate) health: Arc<ModelHealth>,
    pub(crate) log: Log,
    /// Memory for outputs.
    pub(crate) budget: Arc<Budget>,
    pub(crate) spare: SpareEngine,
}

/// First and longest pause between attempts to start an engine.
const RESTART_BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Interval at which an engine's process is checked.
const PROCESS_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Pause between attempts to start another engine in addition to the running one.
const SUCCESSOR_PAUSE: Duration = Duration::from_secs(30);

/// An engine that runs, as it is watched.
struct WatchedEngine {
    gpu: u32,
    number: u64,
    process: Option<u32>,
    has_exited: ExitCheck,
    /// Whether another one may run at the same time. The memory of a GPU may not be enough for both.
    keeps_spare: bool,
}

/// Why an engine ended.
enum EngineEnd {
    /// There is no more work.
    Closed,
    Lost(EngineError),
    /// It took too much memory; its successor is ready.
    Outgrown(WarmEngine),
}

impl EngineManager {
    /// Starts an engine and runs each batch size once. The first engine determines whether requests can share batches;
    /// its successors follow.
    pub(crate) fn start(
        &self,
        gpu: u32,
        first: Option<&Signature>,
    ) -> Result<(WarmEngine, Signature), EngineError> {
        let mut engine = (self.start)(&self.settings.engine_on(gpu, &self.file.path), &self.output_sink())?;
        let device = engine.device();
        if self.settings.engine.require_gpu && !device.provider.is_gpu() {
            return Err(EngineError::NoGpu(skip_reasons(&device.skipped_providers)));
        }
        self.log_precision(device);
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
                if cudock_engine::warm_up(lane.as_mut(), &signature, &[rows], limit)?.contains(&rows) {
                    times.push((rows, begun.elapsed()));
                }
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

    /// Writes what an engine prints to the log.
    fn output_sink(&self) -> OutputSink {
        let (log, name) = (self.log.clone(), self.file.name.clone());
        Arc::new(move |stream, text| {
            log.event("engine_output", &[("model", &name), ("stream", stream), ("text", text)]);
        })
    }

    /// Logs how the results of a converted model differ, or why it is not used.
    fn log_precision(&self, device: &DeviceInfo) {
        let Some(report) = &device.precision else { return };
        let difference = report.difference.as_ref();
        let number = |number: f64| format!("{number:.3e}");
        let count = |count: u64| Some(count.to_string()).filter(|_| count > 0);
        let fields = [
            ("requested", Some(report.requested.clone())),
            ("used", Some(report.used.clone())),
            ("reason", report.reason.clone()),
            ("max_absolute", difference.map(|difference| number(difference.max_absolute))),
            ("max_relative", difference.map(|difference| number(difference.max_relative))),
            ("same_result", difference.and_then(|difference| difference.same_result.map(number))),
            ("clamped_weights", count(report.clamped_weights)),
            ("raised_weights", count(report.raised_weights)),
        ];
        let fields: Vec<_> =
            fields.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?))).collect();
        self.log_event("precision", &fields);
    }

    fn log_event(&self, name: &str, fields: &[(&str, &str)]) {
        let model = [("model", &*self.file.name), ("version", &self.file.version)];
        self.log.event(name, &[&model[..], fields].concat());
    }

    /// Runs an engine that was reported, and its successors, on a GPU until the queue is closed and empty.
    pub(crate) fn run_until_closed(
        self: &Arc<Self>,
        gpu: u32,
        mut warm: WarmEngine,
        signature: &Arc<Signature>,
        padding: &Arc<Vec<Vec<u8>>>,
    ) {
        loop {
            let ended = self.run(gpu, warm, signature, padding);
            let since = Instant::now();
            warm = match ended {
                EngineEnd::Closed => break drop(self.spare.take()),
                EngineEnd::Outgrown(successor) => {
                    self.queue.metrics.restarted();
                    successor
                }
                EngineEnd::Lost(failure) => {
                    let failure = failure.to_string();
                    self.queue.metrics.restarted();
                    self.health.engine_lost(gpu, &failure);
                    self.log_event("engine_lost", &[("error", &failure)]);
                    let Some(next) = self.spare.take().or_else(|| self.restart(gpu, signature)) else {
                        break;
                    };
                    next
                }
            };
            warm.report(&self.health);
            self.log_event("engine_replaced", &[("after_ms", &since.elapsed().as_millis().to_string())]);
        }
    }

    /// Runs the lanes of one engine.
    fn run(
        self: &Arc<Self>,
        gpu: u32,
        warm: WarmEngine,
        signature: &Arc<Signature>,
        padding: &Arc<Vec<Vec<u8>>>,
    ) -> EngineEnd {
        let WarmEngine { engine, lanes } = warm;
        let number = self.queue.engine_started();
        let process = engine.process();
        let ends = thread::scope(|scope| {
            let has_exited = engine.exit_check().unwrap_or_else(|| Box::new(|| false));
            let keeps_spare = !engine.device().provider.is_gpu();
            let running = WatchedEngine { gpu, number, process, has_exited, keeps_spare };
            let watcher = scope.spawn(move || self.watch(scope, &running, signature));
            let is_only_lane = lanes.len() == 1;
            let handles: Vec<_> = lanes
                .into_iter()
                .map(|mut lane| {
                    let manager = Arc::clone(self);
                    let context = LaneContext {
                        queue: Arc::clone(&self.queue),
                        signature: Arc::clone(signature),
                        pad_sizes: self.settings.pad_sizes.clone(),
                        padding: Arc::clone(padding),
                        limit: self.settings.engine_timeout,
                        budget: Arc::clone(&self.budget),
                        engine: number,
                        is_only_lane,
                        on_limited: Box::new(move |rows| {
                            manager.log_event("batch_limited", &[("rows", &rows.to_string())]);
                        }),
                    };
                    scope.spawn(move || {
                        let result = context.run_batches(lane.as_mut());
                        if result.is_err() {
                            context.queue.engine_ended(number);
                        }
                        result.err().map(EngineEnd::Lost)
                    })
                })
                .collect();
            let lost: Vec<_> =
                handles.into_iter().filter_map(|handle| handle.join().ok().flatten()).collect();
            self.queue.engine_ended(number);
            watcher.thread().unpark();
            let noticed = watcher.join().ok().flatten();
            // A successor is ready whatever happened since.
            match noticed {
                Some(EngineEnd::Outgrown(_)) => noticed.into_iter().chain(lost).collect(),
                _ => lost.into_iter().chain(noticed).collect::<Vec<_>>(),
            }
        });
        ends.into_iter().next().unwrap_or(EngineEnd::Closed)
    }

    /// Notices that an idle engine died, or that one takes too much memory, and ends its lanes. Keeps a spare one while
    /// engines crash.
    fn watch<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        watched: &WatchedEngine,
        signature: &'scope Signature,
    ) -> Option<EngineEnd> {
        let mut paused_until = Instant::now();
        let (gpu, mut spare_after) = (watched.gpu, Instant::now());
        while self.queue.has_engine(watched.number) {
            if (watched.has_exited)() {
                self.queue.engine_ended(watched.number);
                return Some(EngineEnd::Lost(EngineError::Died("while it was idle".to_owned())));
            }
            let excess = self.settings.engine_memory.zip(watched.process.and_then(private_memory));
            if let Some((limit, used)) = excess.filter(|(limit, used)| used > limit)
                && Instant::now() >= paused_until
            {
                let (used, limit) = (used.to_string(), limit.to_string());
                self.log_event("engine_memory", &[("bytes", &used), ("limit", &limit)]);
                match self.start_again(watched.gpu, signature) {
                    Ok(successor) => {
                        self.queue.engine_ended(watched.number);
                        return Some(EngineEnd::Outgrown(successor));
                    }
                    Err(error) => self.log_event("engine_not_started", &[("error", &error.to_string())]),
                }
                paused_until = Instant::now() + SUCCESSOR_PAUSE;
            }
            let is_wary = self.queue.crashes.is_wary(Instant::now());
            let wants_spare = watched.keeps_spare && self.spare.is_allowed && is_wary;
            if !wants_spare {
                drop(self.spare.take());
            } else if Instant::now() >= spare_after && self.spare.begin() {
                // The scope ends with this thread: if the engine is lost meanwhile, the spare one is waited for.
                scope.spawn(move || self.start_spare(gpu, signature));
                spare_after = Instant::now() + SUCCESSOR_PAUSE;
            }
            self.queue.crashes.release(!wants_spare || self.spare.is_ready(), Instant::now());
            thread::park_timeout(PROCESS_CHECK_INTERVAL);
        }
        None
    }

    fn start_spare(&self, gpu: u32, signature: &Signature) {
        let started = self.start_again(gpu, signature).inspect_err(|error| {
            self.log_event("engine_not_started", &[("error", &error.to_string())]);
        });
        self.spare.set(started.ok());
    }

    /// Starts an engine of a model whose signature is known.
    pub(crate) fn start_again(&self, gpu: u32, signature: &Signature) -> Result<WarmEngine, EngineError> {
        let (warm, found) = self.start(gpu, Some(signature))?;
        if found == *signature {
            return Ok(warm);
        }
        let reason = "the inputs or outputs of the model file have changed; reload the model".to_owned();
        Err(EngineError::Load { model: self.file.path.clone(), reason })
    }

    /// Retries until an engine runs again; `None` once the model is closing.
    fn restart(&self, gpu: u32, signature: &Signature) -> Option<WarmEngine> {
        let mut pause = RESTART_BACKOFF.0;
        loop {
            let error = match self.start_again(gpu, signature) {
                Ok(warm) => return Some(warm),
                Err(error) => error,
            };
            let reason = error.to_string();
            self.health.engine_lost(gpu, &reason);
            self.log_event("engine_not_started", &[("error", &reason)]);
            if let EngineError::NoGpu(reason) = error
                && self.health.reject_without_gpu(&reason)
            {
                self.queue.fail_all(&ServeError::NoGpu { name: self.file.name.clone(), reason });
            }
            if self.health.is_closing() {
                self.queue.fail_all(&ServeError::NotReady { name: self.file.name.clone(), reason });
                return None;
            }
            self.queue.crashes.release(false, Instant::now());
            thread::sleep(pause);
            pause = (pause * 2).min(RESTART_BACKOFF.1);
        }
    }
}

/// Memory of a process in bytes, without what it shares with the server and the files it maps.
fn private_memory(process: u32) -> Option<u64> {
    status_bytes(&format!("/proc/{process}/status"), "RssAnon:")
}
