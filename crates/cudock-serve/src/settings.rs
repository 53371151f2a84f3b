//! What a server is told, with every default resolved.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cudock_engine::{Engine, EngineError, EngineSettings, Provider};
use cudock_tensor::Limits;

use crate::http::ApiKeys;
use crate::log::Log;

/// Starts an engine; called again whenever one has died.
pub type StartEngine = Arc<dyn Fn(&EngineSettings) -> Result<Box<dyn Engine>, EngineError> + Send + Sync>;

/// How a model is run: as for all, and as its own settings file says where there is one. The error is shown to users.
pub type ModelSettingsFor = Arc<dyn Fn(Option<&Path>) -> Result<ModelSettings, String> + Send + Sync>;

/// Reads memory and use of the GPUs.
pub type ReadDevices = Arc<dyn Fn() -> Vec<DeviceReading> + Send + Sync>;

/// A GPU at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReading {
    /// Its name.
    pub name: String,
    /// Its number.
    pub gpu: u32,
    /// Bytes in use, by everybody.
    pub memory_used: u64,
    /// Bytes it has.
    pub memory_total: u64,
    /// Share of the last moments in which a kernel ran, 0 to 1.
    pub utilisation: Option<f64>,
}

/// What a server is told.
pub struct ServeSettings {
    /// Where to listen: HTTP/1.1, HTTP/2 and gRPC alike.
    pub listen: Vec<SocketAddr>,
    /// Threads that read and write connections.
    pub io_threads: usize,
    /// What is looked at of one request.
    pub limits: Limits,
    /// Most bytes that requests and answers may hold at once, from the first byte read to the last one written.
    pub memory: usize,
    /// Most connections at once.
    pub connections: usize,
    /// How long a client may take for the head, for a piece of the body, and to take its answer.
    pub client_timeout: Duration,
    /// How long requests may take to end once the server is told to.
    pub drain_timeout: Duration,
    /// Who may ask.
    pub keys: ApiKeys,
    /// Certificate and key, for TLS.
    pub tls: Option<TlsFiles>,
    /// Where models are.
    pub models: ModelSource,
    /// How each of them is run.
    pub model_settings: ModelSettingsFor,
    /// Whether changed model files are loaded by themselves.
    pub watch: bool,
    /// Starts engines.
    pub start_engine: StartEngine,
    /// Reads the GPUs.
    pub read_devices: ReadDevices,
    /// Where events go.
    pub log: Log,
}

/// Certificate chain and private key, PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The chain.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// Where models are.
#[derive(Clone, Debug)]
pub enum ModelSource {
    /// One file under one name.
    File {
        /// The name it is served by.
        name: String,
        /// The file.
        file: PathBuf,
    },
    /// A folder: `NAME.onnx`, `NAME/model.onnx` or `NAME/VERSION/model.onnx`.
    Folder(PathBuf),
}

/// How a model is run.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct ModelSettings {
    /// libonnxruntime.so.
    pub library: PathBuf,
    /// Folders of the CUDA libraries.
    pub library_path: Vec<PathBuf>,
    /// Providers, in the order they are tried.
    pub providers: Vec<Provider>,
    /// GPUs; an engine on each.
    pub gpus: Vec<u32>,
    /// Threads of a CPU engine; zero: its own choice.
    pub threads: usize,
    /// Batches that may be with one engine at once.
    pub lanes: usize,
    /// Sessions of one engine, shared by its lanes.
    pub sessions: usize,
    /// Most bytes of device memory.
    pub gpu_memory: Option<u64>,
    /// Channels last.
    pub nhwc: bool,
    /// Whether batches of preferred sizes are recorded and replayed.
    pub graphs: bool,
    /// Whether shared memory is pinned.
    pub pinned: bool,
    /// Whether tensors are bound rather than passed.
    pub io_binding: bool,
    /// Whether convolutions try every algorithm.
    pub exhaustive: bool,
    /// Where TensorRT keeps the engines it builds.
    pub engine_cache: Option<PathBuf>,
    /// Whether rows may share a batch; none: as the model's shapes say.
    pub batch: Option<bool>,
    /// Most rows of a batch.
    pub max_batch: usize,
    /// Longest a row waits for others while the device is free.
    pub max_wait: Duration,
    /// Row counts that batches are made for.
    pub preferred: Vec<usize>,
    /// Whether batches are padded up to the next preferred size.
    pub pad_rows: bool,
    /// Sizes that open dimensions of a row are padded up to.
    pub pad_sizes: Vec<usize>,
    /// The time answers are to take at most.
    pub latency_target: Option<Duration>,
    /// Most rows that wait.
    pub queue_rows: usize,
    /// Longest wait that is accepted.
    pub queue_time: Duration,
    /// Longest an engine may take for one batch.
    pub engine_timeout: Duration,
    /// Smallest and largest value of an input, for the page's drawing pad.
    pub try_range: Option<(f64, f64)>,
}

impl ModelSettings {
    /// Whether a GPU was asked for, so that running without one is worth a word.
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
