//! A model that is served: its queue, its engines, its figures.

mod keeper;
mod lane;
mod queue;
mod repository;
mod shapes;
mod state;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cudock_batcher::Time;
use cudock_engine::Provider;
use cudock_tensor::{Answer, Inference, Signature, Tensor};

use self::keeper::Keeper;
pub(crate) use self::queue::Queue;
use self::queue::{NotTaken, Pending, Waiting};
pub use self::repository::RepositoryError;
pub(crate) use self::repository::{FoundModel, by_version, find};
use self::shapes::RowShapes;
use self::state::{Condition, ModelState};
use crate::log::Log;
use crate::metrics::{ModelMetrics, RecentStages, Totals};
use crate::quiet::Quiet;
use crate::reply::lock;
use crate::settings::{ModelSettings, StartEngine};
use crate::{ServeError, Statistics};

/// A model that is served. One version of one name; a reload makes a new one.
pub struct Model {
    name: String,
    version: String,
    file: PathBuf,
    files: FileStamps,
    settings: ModelSettings,
    signature: Arc<Signature>,
    queue: Arc<Queue>,
    state: Arc<ModelState>,
    keepers: Mutex<Vec<JoinHandle<()>>>,
    successor: OnceLock<Arc<Self>>,
}

/// What tells the files of a model from their successors: the model file, those beside it that hold its weights, and
/// its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStamps(Vec<(PathBuf, Option<Stamp>)>);

impl FileStamps {
    /// The files of a model as they are now.
    pub(crate) fn of(found: &FoundModel) -> Self {
        let weights = cudock_model::onnx::external_files(&found.file);
        let files = std::iter::once(found.file.clone()).chain(weights).chain(found.settings_file());
        Self(files.map(|file| (file.clone(), Stamp::of(&file))).collect())
    }

    /// Whether all are as they were.
    pub(crate) fn hold(&self) -> bool {
        self.0.iter().all(|(file, stamp)| Stamp::of(file) == *stamp)
    }
}

/// What tells a file from its successor without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    size: u64,
    modified: Option<std::time::SystemTime>,
    inode: u64,
}

impl Stamp {
    /// The stamp of a file as it is now.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let data = std::fs::metadata(file).ok()?;
        Some(Self { size: data.len(), modified: data.modified().ok(), inode: data.ino() })
    }
}

impl Model {
    /// Loads and warms a model. Blocks until it is ready to be asked.
    pub(crate) fn load(
        found: &FoundModel,
        settings: &ModelSettings,
        start: &StartEngine,
        log: &Log,
    ) -> Result<Self, ServeError> {
        let not_loaded = |reason: String| ServeError::NotReady { name: found.name.clone(), reason };
        let files = FileStamps::of(found);
        let queue = Arc::new(Queue::new(settings.batcher(), ModelMetrics::default()));
        let state = Arc::new(ModelState::default());
        let keeper = Arc::new(Keeper {
            name: found.name.clone(),
            version: found.version.clone(),
            file: found.file.clone(),
            settings: settings.clone(),
            start: Arc::clone(start),
            queue: Arc::clone(&queue),
            state: Arc::clone(&state),
            log: log.clone(),
        });
        let mut warm = Vec::new();
        let mut signature: Option<Arc<Signature>> = None;
        for &gpu in &settings.gpus {
            let (engine, found) =
                keeper.start(gpu, signature.as_deref()).map_err(|error| not_loaded(error.to_string()))?;
            signature.get_or_insert_with(|| Arc::new(found));
            warm.push((gpu, engine));
        }
        let signature = signature.ok_or_else(|| not_loaded("no device is given to run it on".to_owned()))?;
        let mut keepers = Vec::new();
        for (gpu, engine) in warm {
            let (keeper, signature) = (Arc::clone(&keeper), Arc::clone(&signature));
            let thread = thread::Builder::new().name(format!("engine {gpu}"));
            let handle = thread
                .spawn(move || keeper.keep(gpu, engine, &signature))
                .map_err(|error| not_loaded(format!("cannot start a thread: {error}")))?;
            keepers.push(handle);
        }
        // The engines report themselves from their threads; a model is ready once they did.
        while state.condition().devices.is_empty() {
            thread::sleep(Duration::from_micros(200));
        }
        Ok(Self {
            name: found.name.clone(),
            version: found.version.clone(),
            file: found.file.clone(),
            files,
            settings: settings.clone(),
            signature,
            queue,
            state,
            keepers: Mutex::new(keepers),
            successor: OnceLock::new(),
        })
    }

    /// The name it is served by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What it takes and gives.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Most rows of a batch; none if rows do not share batches.
    pub fn max_rows(&self) -> usize {
        if self.signature.batched { self.settings.max_batch } else { 0 }
    }

    /// Row counts that batches are made for.
    pub fn preferred(&self) -> &[usize] {
        &self.settings.preferred
    }

    pub(crate) fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// Whether an engine runs.
    pub fn is_ready(&self) -> bool {
        !self.state.condition().devices.is_empty()
    }

    pub(crate) fn condition(&self) -> Condition {
        self.state.condition()
    }

    /// What it runs on, in a word: "cpu", or the GPU's name.
    pub(crate) fn device_name(&self) -> Arc<str> {
        self.state.device_name()
    }

    /// Why a GPU that was asked for is not used.
    pub(crate) fn degraded(&self) -> Option<String> {
        let condition = self.condition();
        if let Some(reason) = condition.lost {
            return Some(reason);
        }
        let device = condition.devices.iter().find(|device| device.provider == Provider::Cpu)?;
        if !self.settings.wants_gpu() {
            return None;
        }
        let reasons: Vec<_> =
            device.passed_over.iter().map(|(provider, why)| format!("{provider:?}: {why}")).collect();
        Some(format!("a GPU was asked for and is not used: {}", reasons.join("; ")))
    }

    /// Whether the files are not those that were loaded.
    pub(crate) fn files_changed(&self) -> bool {
        !self.files.hold()
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Refuses before the body is looked at, if the queue is known to be full.
    pub(crate) fn refuse_if_crowded(&self) -> Result<(), ServeError> {
        self.queue.refuse_if_crowded()
    }

    /// Runs a request. Dropping the future takes it back if it has not begun to run.
    pub async fn infer(&self, request: Inference) -> Result<Answer, ServeError> {
        self.infer_since(request, Instant::now()).await
    }

    /// Runs a request whose first bytes came at that time; its deadline counts from there.
    pub(crate) async fn infer_since(
        &self,
        request: Inference,
        received: Instant,
    ) -> Result<Answer, ServeError> {
        let deadline = request.timeout.and_then(|timeout| received.checked_add(timeout));
        let (rows, priority, mut inputs) = (request.rows, request.priority, request.inputs);
        let mut model = self;
        loop {
            let bucket = model.bucket(&inputs);
            let pending = Pending::submit(&model.queue, |sender| Waiting {
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
                    Quiet::expect(&model.queue);
                    return pending.outcome(deadline).await;
                }
                Err(NotTaken::Refused(error)) => return Err(error),
                // Replaced between being looked up and being asked: its successor answers, if it takes the same.
                Err(NotTaken::Closed(waiting)) => match model.successor.get() {
                    Some(next) if next.signature == model.signature => {
                        inputs = waiting.inputs;
                        model = next;
                    }
                    Some(_) => {
                        let reason = "it was just replaced by one that takes other inputs".to_owned();
                        return Err(ServeError::NotReady { name: self.name.clone(), reason });
                    }
                    None => return Err(ServeError::Draining),
                },
            }
        }
    }

    /// Names the model that takes the requests this one can no longer take.
    pub(crate) fn succeeded_by(&self, next: Arc<Self>) {
        // A model is replaced once.
        let _ = self.successor.set(next);
    }

    fn bucket(&self, inputs: &[Tensor]) -> u64 {
        let open = self.signature.inputs.iter().any(|spec| spec.shape.iter().skip(1).any(Option::is_none));
        if !open && self.signature.batched {
            return 0;
        }
        RowShapes::of(inputs, &self.signature, &self.settings.pad_sizes).bucket()
    }

    /// Takes no more requests, runs those it has, and ends its engines. Blocks.
    pub(crate) fn close(&self) {
        *lock(&self.state.closing) = true;
        self.queue.close();
        for keeper in std::mem::take(&mut *lock(&self.keepers)) {
            // A keeper that panicked has nothing left to run.
            let _ = keeper.join();
        }
    }

    /// Rows and requests that wait.
    pub(crate) fn queued(&self) -> (usize, usize) {
        self.queue.length()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.queue.metrics.totals()
    }

    pub(crate) fn recent(&self) -> RecentStages {
        self.queue.metrics.recent(self.now())
    }

    fn now(&self) -> Time {
        self.queue.now()
    }

    /// Counts in the words of Triton's statistics.
    pub fn statistics(&self) -> Statistics {
        let totals = self.totals();
        let nanoseconds = |sum: Duration| u64::try_from(sum.as_nanos()).unwrap_or(u64::MAX);
        Statistics {
            requests: totals.requests,
            rows: totals.rows,
            batches: totals.batches,
            failed: totals.failed,
            queue_ns: nanoseconds(totals.stages.queue.sum()),
            compute_ns: nanoseconds(totals.stages.compute.sum()),
            batch_sizes: totals.sizes,
        }
    }
}
