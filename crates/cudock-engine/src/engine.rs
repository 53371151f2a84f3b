//! The interface of engines.

use std::path::PathBuf;
use std::time::Duration;

use cudock_tensor::{DType, Signature};

/// An execution provider. Operators that a provider does not support run on the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "each name is its own explanation")]
pub enum Provider {
    Cpu,
    Cuda,
    TensorRt,
}

impl Provider {
    /// Whether it runs on a GPU.
    pub fn is_gpu(self) -> bool {
        self != Self::Cpu
    }
}

/// Settings for loading a model.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own, to be measured alone")]
pub struct EngineSettings {
    /// The model file.
    pub model: PathBuf,
    /// libonnxruntime.so; its provider libraries are in the same directory.
    pub library: PathBuf,
    /// Directories of the CUDA libraries that the provider needs, for the engine process.
    pub library_path: Vec<PathBuf>,
    /// Providers to try, in order. One that cannot be used is skipped and the reason stored in [`DeviceInfo`].
    pub providers: Vec<Provider>,
    /// Index of the GPU.
    pub gpu: u32,
    /// Threads for operators; 0 leaves the choice to the engine.
    pub threads: usize,
    /// Lanes: most batches in the engine at once, each with its own buffers.
    pub lanes: usize,
    /// Sessions shared by the lanes; with more than one, copies of one batch overlap with the computation of another.
    pub sessions: usize,
    /// Most bytes of device memory.
    pub gpu_memory: Option<u64>,
    /// Whether convolutions use the channels-last layout.
    pub nhwc: bool,
    /// Row counts for which the kernel launches are captured as CUDA graphs and replayed; others run as usual. A
    /// capture stops every other lane for a moment, so [`crate::warm_up`] does it before there are requests. If it
    /// fails, the engine dies and should be restarted without.
    pub graphs: Vec<usize>,
    /// Whether the memory shared with the engine is pinned, so that the device reads it directly.
    pub pinned: bool,
    /// Whether inputs and outputs have fixed buffers in device memory, to and from which each lane copies while another
    /// lane's batch is computed. Otherwise the engine copies before and after the computation, and nothing is captured
    /// (`graphs`).
    pub io_binding: bool,
    /// Whether convolutions try every algorithm once per shape and keep the fastest. Pays off for few batch sizes.
    pub exhaustive: bool,
    /// Directory in which TensorRT caches the engines it builds, which takes minutes.
    pub engine_cache: Option<PathBuf>,
}

impl EngineSettings {
    /// Settings for the CPU: one lane, one session, the engine's choice of threads. What a GPU needs beyond its
    /// provider (I/O binding, pinned memory) is enabled.
    pub fn new(model: impl Into<PathBuf>, library: impl Into<PathBuf>) -> Self {
        Self {
            model: model.into(),
            library: library.into(),
            library_path: Vec::new(),
            providers: vec![Provider::Cpu],
            gpu: 0,
            threads: 0,
            lanes: 1,
            sessions: 1,
            gpu_memory: None,
            nhwc: false,
            graphs: Vec::new(),
            pinned: true,
            io_binding: true,
            exhaustive: false,
            engine_cache: None,
        }
    }
}

/// The device that a model actually runs on.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DeviceInfo {
    /// The provider in use.
    pub provider: Provider,
    /// "cpu", or the GPU's name.
    pub name: String,
    /// The GPU's index.
    pub gpu: Option<u32>,
    /// Requested providers that are not used, with the reason.
    pub skipped_providers: Vec<(Provider, String)>,
    /// Other requested features that are not used, with the reason.
    pub notes: Vec<String>,
    /// Version of the engine, for example "ONNX Runtime 1.31.1".
    pub engine: String,
}

/// Memory usage of the engine process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProcessUsage {
    /// Resident bytes.
    pub resident: u64,
}

/// An error of an engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine's library cannot be used.
    #[error("cannot use the engine library {}: {reason}", library.display())]
    Library {
        /// The library.
        library: PathBuf,
        /// The loader's message.
        reason: String,
    },
    /// The model cannot be loaded.
    #[error("cannot load {}: {reason}", model.display())]
    Load {
        /// The model.
        model: PathBuf,
        /// The engine's message.
        reason: String,
    },
    /// The batch failed; the engine can run the next one.
    #[error("the engine failed: {0}")]
    Failed(String),
    /// The engine process has exited; all its lanes are unusable.
    #[error("the engine died ({0})")]
    Died(String),
    /// The engine timed out and was killed; all its lanes are unusable.
    #[error("the engine timed out after {} ms and was killed", .0.as_millis())]
    TimedOut(Duration),
    /// There is no memory for the batch.
    #[error("cannot allocate memory for a batch of {0} bytes")]
    OutOfMemory(usize, #[source] std::io::Error),
}

impl EngineError {
    /// Whether the engine must be restarted.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Died(_) | Self::TimedOut(_))
    }

    /// A hint, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Library { .. } => Some("fetch it with `cudock runtime install onnxruntime`"),
            _ => None,
        }
    }
}

/// One output of a batch, in memory that the lane's next batch will reuse.
#[derive(Clone, Debug)]
pub struct OutputView<'lane> {
    /// The type of the elements.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its bytes, in the layout of [`cudock_tensor::Tensor`].
    pub data: &'lane [u8],
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

    /// Runs the batch to its end.
    fn run(&mut self, limit: Duration) -> Result<Vec<OutputView<'_>>, EngineError> {
        self.run_while(limit, &|| true)
    }

    /// Returns memory that an unusually large batch needed to the system.
    fn trim(&mut self) {}
}

/// A loaded model.
pub trait Engine: Send {
    /// Its inputs and outputs.
    fn signature(&self) -> &Signature;

    /// Its device.
    fn device(&self) -> &DeviceInfo;

    /// Its lanes; returned only once.
    fn take_lanes(&mut self) -> Vec<Box<dyn Lane>>;

    /// Its current memory usage.
    fn usage(&self) -> ProcessUsage;

    /// The id of its process, if it has one of its own.
    fn process(&self) -> Option<u32>;

    /// Returns a check whether that process has exited; `None` if the engine has no process of its own.
    fn exit_check(&self) -> Option<ExitCheck> {
        None
    }
}

/// Checks whether an engine process has exited. Needs no file descriptor and no `/proc`, so that a server short of
/// either never takes a healthy engine for a dead one.
pub type ExitCheck = Box<dyn Fn() -> bool + Send>;
