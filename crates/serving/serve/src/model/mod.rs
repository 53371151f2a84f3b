//! A served model: its queue, engines and metrics.

mod crashes;
mod engine_manager;
mod health;
mod inputs;
mod lane;
mod queue;
pub(crate) mod repository;
mod shapes;
mod spare;
mod warm_engine;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use cudock_base::{FileStamp, lock};
use cudock_engine::{EngineError, Provider, skip_reasons};
use cudock_model::{is_python_model, python_files};
use cudock_server::{Budget, COMPUTE_STAGE, Log, QUEUE_STAGE};
use cudock_tensor::{InferenceRequest, InferenceResponse, Signature, Tensor};
use cudock_trace::RequestTrace;

use self::engine_manager::EngineManager;
use self::health::ModelHealth;
use self::inputs::ModelInputs;
pub(crate) use self::queue::Queue;
use self::queue::{Attempt, PendingRequest, Submission};
pub use self::repository::RepositoryError;
pub(crate) use self::repository::{ModelFile, ModelId, compare_versions, find_models};
use self::shapes::RowShapes;
use self::spare::SpareEngine;
use self::warm_engine::WarmEngine;
use crate::ServeError;
use crate::metrics::ModelMetrics;
use crate::read_tracker::ReadTracker;
use crate::reply::{TimedResponse, Unanswered};
use crate::service::loader::Loader;
use crate::settings::{ModelSettings, StartEngine};

/// A served model: one version of one name. A reload creates a new one. While it is unloaded it has no engines, and
/// requests wait in its queue.
pub(crate) struct Model {
    pub(crate) file: ModelFile,
    pub(crate) stamps: FileStamps,
    pub(crate) settings: ModelSettings,
    pub(crate) signature: Arc<Signature>,
    pub(crate) inputs: ModelInputs,
    pub(crate) queue: Arc<Queue>,
    pub(crate) health: Arc<ModelHealth>,
    manager: Arc<EngineManager>,
    engine_threads: Mutex<Vec<JoinHandle<()>>>,
    is_resident: AtomicBool,
    loader: Arc<Loader>,
    successor: OnceLock<Arc<Self>>,
}

/// Identifies the current files of a model: the model file, external weights or code, and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStamps(Vec<(PathBuf, Option<FileStamp>)>);

impl FileStamps {
    pub(crate) fn of(found: &ModelFile) -> Self {
        let others = if is_python_model(&found.path) {
            python_files(&found.path)
        } else {
            cudock_model::onnx::external_files(&found.path)
        };
        let files = std::iter::once(found.path.clone()).chain(others).chain(found.settings_file());
        Self(files.map(|file| (file.clone(), FileStamp::of(&file))).collect())
    }

    /// These files, and those that settings name.
    fn and<'a>(mut self, files: impl Iterator<Item = &'a Path>) -> Self {
        self.0.extend(files.map(|file| (file.to_owned(), FileStamp::of(file))));
        self
    }

    pub(crate) fn hold(&self) -> bool {
        self.0.iter().all(|(file, stamp)| FileStamp::of(file) == *stamp)
    }
}

impl Model {
    /// Loads and warms up a model. Blocks until it is ready.
    pub(crate) fn load(
        found: &ModelFile,
        settings: &ModelSettings,
        start: &StartEngine,
        log: &Log,
        budget: &Arc<Budget>,
        loader: &Arc<Loader>,
    ) -> Result<Self, ServeError> {
        let not_loaded = |reason: String| ServeError::NotReady { name: found.name.clone(), reason };
        let stamps = FileStamps::of(found).and(inputs::files(&settings.options));
        let queue = Arc::new(Queue::new(settings.batcher.clone(), ModelMetrics::default()));
        let health = Arc::new(ModelHealth::default());
        let manager = Arc::new(EngineManager {
            file: found.clone(),
            settings: settings.clone(),
            start: Arc::clone(start),
            queue: Arc::clone(&queue),
            health: Arc::clone(&health),
            log: log.clone(),
            budget: Arc::clone(budget),
            // A spare would take memory beyond the limit for all models.
            spare: SpareEngine::new(!loader.residency().has_budget()),
        });
        let mut warm = Vec::new();
        let mut signature: Option<Arc<Signature>> = None;
        for &gpu in &settings.gpus {
            let started = manager.start(gpu, signature.as_deref());
            let (engine, found) = started.map_err(|error| start_error(&found.name, error))?;
            signature.get_or_insert_with(|| Arc::new(found));
            warm.push((gpu, engine));
        }
        let signature = signature.ok_or_else(|| not_loaded("no device configured".to_owned()))?;
        let inputs = ModelInputs::load(&settings.options, &signature)
            .map_err(|error| not_loaded(error.to_string()))?;
        let model = Self {
            file: found.clone(),
            stamps,
            settings: settings.clone(),
            signature,
            inputs,
            queue,
            health,
            manager,
            engine_threads: Mutex::default(),
            is_resident: AtomicBool::new(true),
            loader: Arc::clone(loader),
            successor: OnceLock::new(),
        };
        if let Err(error) = model.run_engines(warm) {
            model.close();
            return Err(error);
        }
        Ok(model)
    }

    /// Starts the engines again after [`Self::unload`]. Blocks until they are ready.
    pub(crate) fn resume(&self) -> Result<(), ServeError> {
        let start = |&gpu: &u32| Ok((gpu, self.manager.start_again(gpu, &self.signature)?));
        let warm: Result<Vec<_>, EngineError> = self.settings.gpus.iter().map(start).collect();
        let warm = warm.map_err(|error| start_error(&self.file.name, error))?;
        self.queue.resume();
        let running = self.run_engines(warm);
        if running.is_err() {
            self.unload();
        }
        self.is_resident.store(running.is_ok(), Ordering::Release);
        running
    }

    fn run_engines(&self, warm: Vec<(u32, WarmEngine)>) -> Result<(), ServeError> {
        let padding = Arc::new(self.inputs.padding());
        for (gpu, engine) in warm {
            let (manager, signature) = (Arc::clone(&self.manager), Arc::clone(&self.signature));
            let padding = Arc::clone(&padding);
            engine.report(&self.health);
            let thread = thread::Builder::new().name(format!("engine {gpu}"));
            let handle = thread
                .spawn(move || manager.run_until_closed(gpu, engine, &signature, &padding))
                .map_err(|error| self.not_ready(format!("cannot start a thread: {error}")))?;
            lock(&self.engine_threads).push(handle);
        }
        Ok(())
    }

    fn not_ready(&self, reason: String) -> ServeError {
        ServeError::NotReady { name: self.file.name.clone(), reason }
    }

    pub(crate) fn name(&self) -> &str {
        &self.file.name
    }

    pub(crate) fn version(&self) -> &str {
        &self.file.version
    }

    /// Its labels in metrics.
    pub(crate) fn labels(&self) -> [(&str, &str); 2] {
        [("model", self.name()), ("version", self.version())]
    }

    /// Maximum number of rows of a batch; 0 if requests do not share batches.
    pub(crate) fn max_rows(&self) -> usize {
        if self.signature.batched { self.settings.batcher.max_rows } else { 0 }
    }

    /// Whether an engine is running.
    pub(crate) fn is_ready(&self) -> bool {
        !self.health.snapshot().devices.is_empty()
    }

    /// Whether it is loaded; an engine that is lost is replaced.
    pub(crate) fn is_resident(&self) -> bool {
        self.is_resident.load(Ordering::Acquire)
    }

    /// Why a requested GPU is not used.
    pub(crate) fn degraded(&self) -> Option<String> {
        let health = self.health.snapshot();
        if let Some(reason) = health.engine_lost {
            return Some(reason);
        }
        let device = health.devices.iter().find(|device| device.provider == Provider::Cpu)?;
        if !self.settings.wants_gpu() {
            return None;
        }
        Some(format!("a GPU was requested and is not used: {}", skip_reasons(&device.skipped_providers)))
    }

    /// Runs a request whose first bytes arrived at `received`; its deadline counts from there. Dropping the future
    /// withdraws the request unless it is already running. Its stages are noted in `trace`.
    pub(crate) async fn infer(
        &self,
        request: InferenceRequest,
        received: Instant,
        trace: Option<&RequestTrace>,
    ) -> Result<InferenceResponse, ServeError> {
        if let Some(reason) = self.health.missing_gpu() {
            return Err(ServeError::NoGpu { name: self.file.name.clone(), reason });
        }
        let deadline = request.timeout.and_then(|timeout| received.checked_add(timeout));
        let (rows, priority, mut inputs) = (request.rows, request.priority, request.inputs);
        let mut model = self;
        let submitted_at = trace.map(|_| Instant::now());
        loop {
            if !model.is_resident() {
                model.loader.check(&model.file.id())?;
            }
            model.queue.crashes.check(&inputs).inspect_err(|_| model.queue.metrics.failed(1))?;
            let bucket = model.bucket(&inputs);
            let submitted = Submission::submit(&model.queue, |sender| PendingRequest {
                inputs,
                rows,
                bucket,
                priority,
                deadline: deadline.map(|instant| model.queue.time(instant)),
                received: model.queue.time(received),
                attempt: Attempt::First,
                sender,
            });
            let result = match submitted {
                Ok(pending) => {
                    ReadTracker::on_submitted(model.queue.clone());
                    if !model.is_resident() {
                        model.loader.wake();
                    }
                    pending.result(deadline).await
                }
                Err(unanswered) => Err(unanswered),
            };
            match result {
                Ok(TimedResponse { response, run }) => {
                    if let Some((trace, submitted_at)) = trace.zip(submitted_at) {
                        let at = |time| model.queue.instant(time);
                        trace.stage("receive", received, submitted_at);
                        trace.stage(QUEUE_STAGE, submitted_at, at(run.dispatched));
                        trace.stage(COMPUTE_STAGE, at(run.begun), at(run.ended));
                    }
                    return Ok(response);
                }
                Err(Unanswered::Failed(error)) => return Err(error),
                // The model was replaced before the request ran: the successor takes the request if its signature is
                // the same.
                Err(Unanswered::Returned(returned)) => match model.successor.get() {
                    Some(next) if next.signature == model.signature => {
                        inputs = returned;
                        model = next;
                    }
                    Some(_) => {
                        let reason = "it was just replaced by a model with other inputs".to_owned();
                        return Err(self.not_ready(reason));
                    }
                    None => return Err(ServeError::Draining),
                },
            }
        }
    }

    /// Sets the model that takes the requests after this one is closed.
    pub(crate) fn succeeded_by(&self, next: Arc<Self>) {
        // A model is replaced only once.
        let _ = self.successor.set(next);
    }

    fn bucket(&self, inputs: &[Tensor]) -> u64 {
        let open = self.signature.inputs.iter().any(|spec| spec.shape.iter().skip(1).any(Option::is_none));
        if !open && self.signature.batched {
            return 0;
        }
        RowShapes::of(inputs, &self.signature, &self.settings.pad_sizes).bucket()
    }

    /// Runs the queued requests and ends the engines. Requests that arrive meanwhile stay in the queue. Blocks.
    pub(crate) fn unload(&self) {
        // Before the queue is paused, so that a request submitted after that wakes the loader.
        self.is_resident.store(false, Ordering::Release);
        *lock(&self.health.closing) = true;
        self.queue.pause();
        self.join_engines();
        self.queue.crashes.release_all();
        self.health.engines_ended();
        *lock(&self.health.closing) = false;
    }

    /// Accepts no more requests, runs the queued ones, and ends the engines. Without engines, it returns the queued ones.
    /// Blocks.
    pub(crate) fn close(&self) {
        *lock(&self.health.closing) = true;
        self.queue.close();
        self.join_engines();
        self.queue.return_all();
    }

    fn join_engines(&self) {
        for manager in std::mem::take(&mut *lock(&self.engine_threads)) {
            // A thread that panicked has nothing left to run.
            let _ = manager.join();
        }
    }
}

/// The error of requests for a model whose engine cannot be started.
fn start_error(name: &str, error: EngineError) -> ServeError {
    let name = name.to_owned();
    match error {
        EngineError::NoGpu(reason) => ServeError::NoGpu { name, reason },
        error => ServeError::NotReady { name, reason: error.to_string() },
    }
}
