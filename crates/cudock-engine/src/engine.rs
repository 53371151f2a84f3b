//! What an engine is to those who use it.

use std::path::PathBuf;
use std::time::Duration;

use cudock_tensor::{DType, Signature};

/// What runs the operators of a model.
///
/// The processor runs whatever another provider does not take.
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
    pub fn on_gpu(self) -> bool {
        self != Self::Cpu
    }
}

/// How a model is to be loaded.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own, to be measured alone")]
pub struct EngineSettings {
    /// The model file.
    pub model: PathBuf,
    /// libonnxruntime.so; its provider libraries are beside it.
    pub library: PathBuf,
    /// Folders of the CUDA libraries the provider needs, for the engine's process to search.
    pub library_path: Vec<PathBuf>,
    /// Providers to try, in order. One that cannot be used is passed over and the reason kept in [`Device`].
    pub providers: Vec<Provider>,
    /// Number of the GPU.
    pub gpu: u32,
    /// Threads for the operators; zero: the engine's own choice.
    pub threads: usize,
    /// Lanes: batches that may be with the engine at once, each with its own buffers.
    pub lanes: usize,
    /// Sessions the lanes share; more than one lets copies of one batch overlap the work on another.
    pub sessions: usize,
    /// Most bytes of device memory the engine may take.
    pub gpu_memory: Option<u64>,
    /// Whether convolutions run with channels last.
    pub nhwc: bool,
    /// Row counts for which the launches are recorded once and replayed (CUDA graphs); others run as usual. Recording
    /// stops every other lane for a moment, so [`crate::warm`] does it before there is work. If it fails, the engine
    /// dies, and should be started again without.
    pub graphs: Vec<usize>,
    /// Whether the memory shared with the engine is pinned, so that the device reads it directly.
    pub pinned: bool,
    /// Whether inputs and outputs have fixed places in device memory that each lane copies to and from, beside the
    /// work on another lane's batch. Without, the engine copies, before and after its work; then nothing is recorded
    /// either (`graphs`).
    pub io_binding: bool,
    /// Whether convolutions try every algorithm once for each shape and keep the fastest. Pays for few sizes of batch.
    pub exhaustive: bool,
    /// Folder where TensorRT keeps the engines it builds, which takes minutes.
    pub engine_cache: Option<PathBuf>,
}

impl EngineSettings {
    /// A model on the processor: one lane, one session, as many threads as the engine likes. What a GPU needs beyond
    /// its provider (io binding, pinned memory) is on.
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

/// What a model really runs on.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Device {
    /// The provider in use.
    pub provider: Provider,
    /// "cpu", or the GPU's name.
    pub name: String,
    /// The GPU's number.
    pub gpu: Option<u32>,
    /// Why a provider that was asked for is not used.
    pub passed_over: Vec<(Provider, String)>,
    /// What else was asked for and is not done, and why.
    pub notes: Vec<String>,
    /// Version of the engine, as "ONNX Runtime 1.31.1".
    pub engine: String,
}

/// Memory of the device and of the engine's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    /// Resident bytes of the engine's process.
    pub resident: u64,
}

/// Why a batch came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine's library cannot be used.
    #[error("cannot use the engine library {}: {reason}", library.display())]
    Library {
        /// The library.
        library: PathBuf,
        /// What the loader said.
        reason: String,
    },
    /// The model cannot be loaded.
    #[error("cannot load {}: {reason}", model.display())]
    Load {
        /// The model.
        model: PathBuf,
        /// What the engine said.
        reason: String,
    },
    /// The engine refused this batch and is fit for the next.
    #[error("the engine failed: {0}")]
    Failed(String),
    /// The engine's process ended; every lane of the engine is useless.
    #[error("the engine died ({0})")]
    Died(String),
    /// The engine did not answer in time and was killed; every lane of the engine is useless.
    #[error("the engine gave no answer in {} ms and was stopped", .0.as_millis())]
    Hung(Duration),
    /// Memory for the batch cannot be had.
    #[error("cannot make room for a batch of {0} bytes")]
    Room(usize, #[source] std::io::Error),
}

impl EngineError {
    /// Whether the engine must be started again.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Died(_) | Self::Hung(_))
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Library { .. } => Some("fetch it with `cudock runtime install onnxruntime`"),
            _ => None,
        }
    }
}

/// One output of a batch, in memory that the lane's next batch will use again.
#[derive(Clone, Debug)]
pub struct OutputView<'lane> {
    /// The type of the elements.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its bytes, laid out as [`cudock_tensor::Tensor`] says.
    pub data: &'lane [u8],
}

/// A place for one batch at a time: room for the inputs, the run, the outputs.
pub trait Lane: Send {
    /// Room for an input of the coming batch, to be written by the caller: `bytes` long, laid out as
    /// [`cudock_tensor::Tensor`] says. Asked for once for each input of the signature before [`Lane::run`]. The room
    /// holds what an earlier batch left there.
    fn input(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<&mut [u8], EngineError>;

    /// Runs the batch; the outputs come in the order of the signature. Takes at most `limit`, if the engine has a
    /// process of its own; such an engine is also asked to stop once `is_wanted` says that nobody waits for the batch.
    fn run_while(
        &mut self,
        limit: Duration,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<OutputView<'_>>, EngineError>;

    /// Runs the batch to its end.
    fn run(&mut self, limit: Duration) -> Result<Vec<OutputView<'_>>, EngineError> {
        self.run_while(limit, &|| true)
    }

    /// Gives memory that an unusually large batch needed back to the system; the next batch may need it again.
    fn trim(&mut self) {}
}

/// A loaded model.
pub trait Engine: Send {
    /// What it takes and gives.
    fn signature(&self) -> &Signature;

    /// What it runs on.
    fn device(&self) -> &Device;

    /// Its lanes; given away once.
    fn take_lanes(&mut self) -> Vec<Box<dyn Lane>>;

    /// What it takes of the machine now.
    fn usage(&self) -> Usage;

    /// The number of its process, if it has one of its own.
    fn process(&self) -> Option<u32>;

    /// Asks the kernel whether that process has exited; none if the engine has no process of its own.
    fn exit_check(&self) -> Option<ExitCheck> {
        None
    }
}

/// Whether an engine's process has exited. Needs no file descriptor and no `/proc`, so that a server short of either
/// never takes a healthy engine for a dead one.
pub type ExitCheck = Box<dyn Fn() -> bool + Send>;
