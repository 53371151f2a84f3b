//! The interface of engines.

use std::path::PathBuf;
use std::time::Duration;

use cudock_tensor::Signature;

use crate::{EngineError, Extent, LaneMemory, OutputView, PrecisionReport};

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
