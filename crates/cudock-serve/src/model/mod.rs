//! A served model: its queue, engines and metrics.

mod engine_manager;
mod health;
mod inputs;
mod lane;
mod queue;
mod repository;
mod shapes;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cudock_base::{FileStamp, lock};
use cudock_engine::Provider;
use cudock_server::Log;
use cudock_tensor::{InferenceRequest, InferenceResponse, Signature, Tensor};

use self::engine_manager::EngineManager;
use self::health::ModelHealth;
use self::inputs::ModelInputs;
pub(crate) use self::queue::Queue;
use self::queue::{PendingRequest, Submission, SubmitError};
pub use self::repository::RepositoryError;
pub(crate) use self::repository::{ModelFile, compare_versions, find_models};
use self::shapes::RowShapes;
use crate::ServeError;
use crate::metrics::ModelMetrics;
use crate::read_tracker::ReadTracker;
use crate::settings::{ModelSettings, StartEngine};

/// A served model: one version of one name. A reload creates a new one.
pub(crate) struct Model {
    pub(crate) file: ModelFile,
    pub(crate) stamps: FileStamps,
    pub(crate) settings: ModelSettings,
    pub(crate) signature: Arc<Signature>,
    pub(crate) inputs: ModelInputs,
    pub(crate) queue: Arc<Queue>,
    pub(crate) health: Arc<ModelHealth>,
    engine_threads: Mutex<Vec<JoinHandle<()>>>,
    successor: OnceLock<Arc<Self>>,
}

/// Identifies the current files of a model: the model file, external weights and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStamps(Vec<(PathBuf, Option<FileStamp>)>);

impl FileStamps {
    pub(crate) fn of(found: &ModelFile) -> Self {
        let weights = cudock_model::onnx::external_files(&found.path);
        let files = std::iter::once(found.path.clone()).chain(weights).chain(found.settings_file());
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
    ) -> Result<Self, ServeError> {
        let not_loaded = |reason: String| ServeError::NotReady { name: found.name.clone(), reason };
        let stamps = FileStamps::of(found).and(settings.inputs.files());
        let queue = Arc::new(Queue::new(settings.batcher.clone(), ModelMetrics::default()));
        let health = Arc::new(ModelHealth::default());
        let manager = Arc::new(EngineManager {
            file: found.clone(),
            settings: settings.clone(),
            start: Arc::clone(start),
            queue: Arc::clone(&queue),
            health: Arc::clone(&health),
            log: log.clone(),
        });
        let mut warm = Vec::new();
        let mut signature: Option<Arc<Signature>> = None;
        for &gpu in &settings.gpus {
            let (engine, found) =
                manager.start(gpu, signature.as_deref()).map_err(|error| not_loaded(error.to_string()))?;
            signature.get_or_insert_with(|| Arc::new(found));
            warm.push((gpu, engine));
        }
        let signature = signature.ok_or_else(|| not_loaded("no device configured".to_owned()))?;
        let inputs =
            ModelInputs::load(&settings.inputs, &signature).map_err(|error| not_loaded(error.to_string()))?;
        let padding = Arc::new(inputs.padding());
        let mut engine_threads = Vec::new();
        for (gpu, engine) in warm {
            let (manager, signature) = (Arc::clone(&manager), Arc::clone(&signature));
            let padding = Arc::clone(&padding);
            let thread = thread::Builder::new().name(format!("engine {gpu}"));
            let handle = thread
                .spawn(move || manager.run_until_closed(gpu, engine, &signature, &padding))
                .map_err(|error| not_loaded(format!("cannot start a thread: {error}")))?;
            engine_threads.push(handle);
        }
        // The engines report themselves from their threads; the model is ready once they have.
        while health.snapshot().devices.is_empty() {
            thread::sleep(Duration::from_micros(200));
        }
        Ok(Self {
            file: found.clone(),
            stamps,
            settings: settings.clone(),
            signature,
            inputs,
            queue,
            health,
            engine_threads: Mutex::new(engine_threads),
            successor: OnceLock::new(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.file.name
    }

    pub(crate) fn version(&self) -> &str {
        &self.file.version
    }

    /// Most rows of a batch; 0 if requests do not share batches.
    pub(crate) fn max_rows(&self) -> usize {
        if self.signature.batched { self.settings.batcher.max_rows } else { 0 }
    }

    /// Whether an engine is running.
    pub(crate) fn is_ready(&self) -> bool {
        !self.health.snapshot().devices.is_empty()
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
        let skipped = device.skipped_providers.iter();
        let reasons: Vec<_> = skipped.map(|(provider, reason)| format!("{provider:?}: {reason}")).collect();
        Some(format!("a GPU was requested and is not used: {}", reasons.join("; ")))
    }

    /// Runs a request whose first bytes arrived at `received`; its deadline counts from there. Dropping the future
    /// withdraws the request unless it is already running.
    pub(crate) async fn infer(
        &self,
        request: InferenceRequest,
        received: Instant,
    ) -> Result<InferenceResponse, ServeError> {
        let deadline = request.timeout.and_then(|timeout| received.checked_add(timeout));
        let (rows, priority, mut inputs) = (request.rows, request.priority, request.inputs);
        let mut model = self;
        loop {
            let bucket = model.bucket(&inputs);
            let pending = Submission::submit(&model.queue, |sender| PendingRequest {
                inputs,
                rows,
                bucket,
                priority,
                deadline: deadline.map(|instant| model.queue.time(instant)),
                received: model.queue.time(received),
                suspect: false,
                sender,
            });
            match pending {
                Ok(pending) => {
                    ReadTracker::on_submitted(&model.queue);
                    return pending.result(deadline).await;
                }
                Err(SubmitError::Rejected(error)) => return Err(error),
                // The model was replaced between lookup and submission: the successor takes the request if its
                // signature is the same.
                Err(SubmitError::Closed(waiting)) => match model.successor.get() {
                    Some(next) if next.signature == model.signature => {
                        inputs = waiting.inputs;
                        model = next;
                    }
                    Some(_) => {
                        let reason = "it was just replaced by a model with other inputs".to_owned();
                        return Err(ServeError::NotReady { name: self.file.name.clone(), reason });
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

    /// Accepts no more requests, runs the queued ones, and ends the engines. Blocks.
    pub(crate) fn close(&self) {
        *lock(&self.health.closing) = true;
        self.queue.close();
        for manager in std::mem::take(&mut *lock(&self.engine_threads)) {
            // A thread that panicked has nothing left to run.
            let _ = manager.join();
        }
    }
}
