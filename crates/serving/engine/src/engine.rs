//! The interface of engines.

use std::path::PathBuf;
use std::time::Duration;

use cudock_tensor::{DType, Signature, rows_range};

use crate::{Extent, LaneMemory, PrecisionReport};

/// What computes: the CPU, or a GPU through one of its libraries. What a GPU library does not support runs on the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    Cpu,
    Cuda,
    TensorRt,
}

impl Provider {
    pub fn is_gpu(self) -> bool {
        self != Self::Cpu
    }
}

/// Settings for loading a model. `Kind` holds what only one kind of engine needs.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct EngineSettings<Kind> {
    pub model: PathBuf,
    /// Directories of shared libraries that the engine process needs, such as those of CUDA.
    pub library_path: Vec<PathBuf>,
    /// Providers to try, in order. One that cannot be used is skipped and the reason stored in [`DeviceInfo`].
    pub providers: Vec<Provider>,
    pub gpu: u32,
    /// Threads for operators; 0 leaves the choice to the engine.
    pub threads: usize,
    /// Lanes: most batches in the engine at once, each with its own buffers.
    pub lanes: usize,
    pub gpu_memory: Option<u64>,
    /// Whether loading fails if no GPU can be used.
    pub require_gpu: bool,
    pub kind: Kind,
}

impl<Kind> EngineSettings<Kind> {
    /// Settings for the CPU: one lane, the engine's choice of threads.
    pub fn new(model: impl Into<PathBuf>, kind: Kind) -> Self {
        Self {
            model: model.into(),
            library_path: Vec::new(),
            providers: vec![Provider::Cpu],
            gpu: 0,
            threads: 0,
            lanes: 1,
            gpu_memory: None,
            require_gpu: false,
            kind,
        }
    }

    /// The same settings for another kind of engine.
    pub fn with_kind<Other>(self, kind: Other) -> EngineSettings<Other> {
        let Self { model, library_path, providers, gpu, threads, lanes, gpu_memory, require_gpu, kind: _ } =
            self;
        EngineSettings { model, library_path, providers, gpu, threads, lanes, gpu_memory, require_gpu, kind }
    }
}

/// The device that a model actually runs on.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct DeviceInfo {
    pub provider: Provider,
    /// "cpu", or the GPU's name.
    pub name: String,
    pub gpu: Option<u32>,
    /// Requested providers that are not used, with the reason.
    pub skipped_providers: Vec<(Provider, String)>,
    /// Other requested features that are not used, with the reason.
    pub notes: Vec<String>,
    /// Name and version of the engine, for example "ONNX Runtime 1.31.1".
    pub engine: String,
    /// The result of converting the model; `None` if no other precision was requested.
    pub precision: Option<PrecisionReport>,
}

/// Why no GPU is used, given the providers that were skipped.
pub fn skip_reasons(skipped_providers: &[(Provider, String)]) -> String {
    let reasons = skipped_providers.iter().map(|(provider, reason)| format!("{provider:?}: {reason}"));
    let reasons: Vec<String> = reasons.collect();
    if reasons.is_empty() { "none was found".to_owned() } else { reasons.join("; ") }
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("cannot use the engine library {}: {reason}", library.display())]
    Library { library: PathBuf, reason: String },
    #[error("cannot load {}: {reason}", model.display())]
    Load { model: PathBuf, reason: String },
    /// The batch failed; the engine can run the next one.
    #[error("the engine failed: {0}")]
    Failed(String),
    /// Nothing was run, because the model does not take some rows; the engine can run the others.
    #[error("the model does not take {}", show_rows(.0))]
    InvalidRows(Vec<InvalidRow>),
    /// The engine process has exited; all its lanes are unusable.
    #[error("the engine died ({0})")]
    Died(String),
    /// The same, by a signal that others send, as the kernel does when memory is out: no fault of the batch.
    #[error("the engine died ({0})")]
    Killed(String),
    /// The engine timed out and was killed; all its lanes are unusable.
    #[error("the engine timed out after {} ms and was killed", .0.as_millis())]
    TimedOut(Duration),
    #[error("cannot allocate memory for a batch of {0} bytes")]
    OutOfMemory(usize, #[source] std::io::Error),
    /// The batch does not fit into the device's memory; the engine can run a smaller one.
    #[error("the batch does not fit into the memory of the device: {0}")]
    DeviceMemory(String),
    /// The model would run on the CPU, and a GPU is required; why none is used.
    #[error("a GPU is required and not used: {0}")]
    NoGpu(String),
}

/// A row that the model does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRow {
    /// Its index in the batch.
    pub row: usize,
    pub reason: String,
}

fn show_rows(rows: &[InvalidRow]) -> String {
    let rows = rows.iter().map(|InvalidRow { row, reason }| format!("row {row} ({reason})"));
    rows.collect::<Vec<_>>().join(", ")
}

impl EngineError {
    /// Whether the engine must be restarted.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Died(_) | Self::Killed(_) | Self::TimedOut(_))
    }
}

/// One output of a batch, in memory that the lane's next batch will reuse.
#[derive(Clone, Debug)]
pub struct OutputView<'lane> {
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// Its bytes, in the layout of [`cudock_tensor::Tensor`].
    pub data: &'lane [u8],
}

impl OutputView<'_> {
    /// Its rows `from..to`; `None` if out of range.
    pub fn rows(&self, from: usize, to: usize) -> Option<Self> {
        let data = self.data.get(rows_range(self.dtype, &self.shape, self.data, from, to)?)?;
        let mut shape = self.shape.clone();
        *shape.first_mut()? = to - from;
        Some(Self { dtype: self.dtype, shape, data })
    }
}

/// Memory and execution of one batch at a time.
pub trait Lane: Send {
    /// Memory for an input of the next batch, to be written by the caller: `bytes` long, in the layout of
    /// [`cudock_tensor::Tensor`]. Call it once for each input of the signature before [`Lane::run`]. The memory
    /// contains what an earlier batch left there.
    fn input(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<&mut [u8], EngineError>;

    /// Runs the batch; the outputs are in signature order. An engine with a process of its own takes at most `limit`,
    /// and is also asked to stop once `is_wanted` returns false.
    fn run_while(
        &mut self,
        limit: Duration,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<OutputView<'_>>, EngineError>;

    fn run(&mut self, limit: Duration) -> Result<Vec<OutputView<'_>>, EngineError> {
        self.run_while(limit, &|| true)
    }

    /// Returns memory that an unusually large batch needed to the system.
    fn trim(&mut self) {}
}

/// A loaded model.
pub trait Engine: Send {
    fn signature(&self) -> &Signature;

    fn device(&self) -> &DeviceInfo;

    /// Its lanes; returned only once.
    fn take_lanes(&mut self) -> Vec<Box<dyn Lane>>;

    /// The id of its process, if it has one of its own.
    fn process(&self) -> Option<u32> {
        None
    }

    /// Returns a check whether that process has exited; `None` if the engine has no process of its own.
    fn exit_check(&self) -> Option<ExitCheck> {
        None
    }
}

/// An engine that [`crate::serve_child`] can run: its lanes use memory that the server has allocated.
pub trait SharedEngine: Engine {
    /// Creates the lane with that number over existing memory.
    fn open_lane(&self, number: usize, memory: LaneMemory) -> Result<Box<dyn SharedLane>, EngineError>;
}

/// A lane in the engine process. The server writes the inputs and reads the outputs.
pub trait SharedLane: Send {
    /// Accepts an input of the next batch that the server has written to its memory.
    fn accept(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<(), EngineError>;

    /// Runs the batch with that number; returns the extents of the outputs.
    fn run_batch(&mut self, batch: u64) -> Result<&[Extent], EngineError>;

    /// Returns a function that cancels batches from another thread; an engine that cannot cancel runs them to their end.
    fn canceler(&self) -> CancelBatch {
        Box::new(|_| ())
    }
}

/// Cancels the batch of a lane with that number, which grows from batch to batch. One that has finished is ignored.
pub type CancelBatch = Box<dyn Fn(u64) + Send>;

/// Checks whether an engine process has exited. Needs no file descriptor and no `/proc`, so that a server short of
/// either never takes a healthy engine for a dead one.
pub type ExitCheck = Box<dyn Fn() -> bool + Send>;
