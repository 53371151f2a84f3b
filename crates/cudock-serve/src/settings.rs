//! Settings of a server, with all defaults resolved.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cudock_engine::{Engine, EngineError, EngineSettings, Provider};
use cudock_server::ServerSettings;
use cudock_tensor::RequestLimits;

/// Starts an engine; called again whenever one has died.
pub type StartEngine = Arc<dyn Fn(&EngineSettings) -> Result<Box<dyn Engine>, EngineError> + Send + Sync>;

/// Returns the settings of a model: those of the server, overridden by its own settings file if it has one. The error
/// is shown to users.
pub type ModelSettingsFor = Arc<dyn Fn(Option<&Path>) -> Result<ModelSettings, String> + Send + Sync>;

/// Reads memory and utilization of the GPUs.
pub type ReadDevices = Arc<dyn Fn() -> Vec<DeviceReading> + Send + Sync>;

/// A measurement of a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReading {
    /// Its name.
    pub name: String,
    /// Its index.
    pub gpu: u32,
    /// Bytes in use, by all processes.
    pub memory_used: u64,
    /// Total bytes.
    pub memory_total: u64,
    /// Share of the last sample period in which a kernel ran, 0 to 1.
    pub utilisation: Option<f64>,
}

/// Settings of a server.
pub struct ServeSettings {
    /// Settings of the HTTP server.
    pub server: ServerSettings,
    /// Limits of one request.
    pub limits: RequestLimits,
    /// Location of the models.
    pub models: ModelSource,
    /// Settings of each model.
    pub model_settings: ModelSettingsFor,
    /// Whether changed model files are reloaded automatically.
    pub watch: bool,
    /// Starts engines.
    pub start_engine: StartEngine,
    /// Reads the GPUs.
    pub read_devices: ReadDevices,
}

/// Location of the models.
#[derive(Clone, Debug)]
pub enum ModelSource {
    /// One file under one name.
    File {
        /// The name under which it is served.
        name: String,
        /// The file.
        file: PathBuf,
    },
    /// A directory with `NAME.onnx`, `NAME/model.onnx` or `NAME/VERSION/model.onnx`.
    Directory(PathBuf),
}

/// Settings of a model.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct ModelSettings {
    /// libonnxruntime.so.
    pub library: PathBuf,
    /// Directories of the CUDA libraries.
    pub library_path: Vec<PathBuf>,
    /// Execution providers, in the order in which they are tried.
    pub providers: Vec<Provider>,
    /// GPUs; each gets an engine.
    pub gpus: Vec<u32>,
    /// Threads of a CPU engine; 0 leaves the choice to the engine.
    pub threads: usize,
    /// Most batches in one engine at once.
    pub lanes: usize,
    /// Sessions of one engine, shared by its lanes.
    pub sessions: usize,
    /// Most bytes of device memory.
    pub gpu_memory: Option<u64>,
    /// Whether to use the channels-last layout.
    pub nhwc: bool,
    /// Whether batches of preferred sizes are captured as CUDA graphs and replayed.
    pub graphs: bool,
    /// Whether shared memory is pinned.
    pub pinned: bool,
    /// Whether tensors are bound to device memory instead of passed.
    pub io_binding: bool,
    /// Whether every convolution algorithm is tried.
    pub exhaustive: bool,
    /// Directory in which TensorRT caches the engines it builds.
    pub engine_cache: Option<PathBuf>,
    /// Whether requests may share a batch; `None`: decided by the model's shapes.
    pub batch: Option<bool>,
    /// Most rows of a batch.
    pub max_batch: usize,
    /// Longest time a request waits for others while the device is idle.
    pub max_wait: Duration,
    /// Preferred row counts of batches.
    pub preferred: Vec<usize>,
    /// Whether batches are padded to the next preferred size.
    pub pad_rows: bool,
    /// Sizes to which dynamic dimensions of a row are padded.
    pub pad_sizes: Vec<usize>,
    /// Target of the 99th latency percentile.
    pub latency_target: Option<Duration>,
    /// Most queued rows.
    pub queue_rows: usize,
    /// Longest accepted queue time.
    pub queue_time: Duration,
    /// Longest time of an engine for one batch.
    pub engine_timeout: Duration,
    /// Smallest and largest input value, for the page's drawing pad.
    pub try_range: Option<(f64, f64)>,
}

impl ModelSettings {
    /// Whether a GPU was requested, so that running without one is reported.
    pub fn wants_gpu(&self) -> bool {
        self.providers.first().is_some_and(|&first| first != Provider::Cpu)
    }

    pub(crate) fn engine(&self, model: PathBuf, gpu: u32) -> EngineSettings {
        EngineSettings {
            model,
            library: self.library.clone(),
            library_path: self.library_path.clone(),
            providers: self.providers.clone(),
            gpu,
            threads: self.threads,
            lanes: self.lanes,
            sessions: self.sessions,
            gpu_memory: self.gpu_memory,
            nhwc: self.nhwc,
            graphs: if self.graphs { self.preferred.clone() } else { Vec::new() },
            pinned: self.pinned,
            io_binding: self.io_binding,
            exhaustive: self.exhaustive,
            engine_cache: self.engine_cache.clone(),
        }
    }

    pub(crate) fn batcher(&self) -> cudock_batcher::BatcherSettings {
        cudock_batcher::BatcherSettings {
            max_rows: self.max_batch,
            max_wait: self.max_wait,
            preferred_rows: self.preferred.clone(),
            pad: self.pad_rows || self.graphs,
            latency_target: self.latency_target,
            max_queued_rows: self.queue_rows,
            max_queue_time: self.queue_time,
            shared_cores: !self.wants_gpu(),
            reject_larger: false,
            lanes: self.lanes * self.gpus.len().max(1),
            ..cudock_batcher::BatcherSettings::default()
        }
    }
}
