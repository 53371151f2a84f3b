//! Settings of a server and its models: the user's options with every default resolved.

mod error;
mod inputs;
mod source;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cudock_batcher::BatcherSettings;
use cudock_engine::{Engine, EngineError, EngineSettings, Provider};
use cudock_engine_onnx::OnnxSettings;
use cudock_project::{ByteSize, DeviceChoice, ServeOptions, TimeSpan};
use cudock_server::{ApiKeys, Log, LogFormat, ServerSettings};
use cudock_tensor::RequestLimits;

pub use self::error::SettingsError;
pub use self::inputs::InputSettings;
pub use self::source::{ModelSource, locate_models};

/// Least memory budget of a server in bytes.
const MIN_MEMORY: usize = 1 << 20;

/// An engine that runs models, with the settings that only it has.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum EngineKind {
    Onnx(OnnxSettings),
}

/// Starts an engine; called again whenever one has died.
pub type StartEngine =
    Arc<dyn Fn(&EngineSettings<EngineKind>) -> Result<Box<dyn Engine>, EngineError> + Send + Sync>;

/// Returns the settings of a model: those of the server, overridden by its own settings file if it has one. The error
/// is shown to users.
pub type ModelSettingsFor = Arc<dyn Fn(Option<&Path>) -> Result<ModelSettings, String> + Send + Sync>;

/// Reads memory and utilization of the GPUs.
pub type ReadDevices = Arc<dyn Fn() -> Vec<DeviceReading> + Send + Sync>;

#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReading {
    pub name: String,
    pub gpu: u32,
    /// Bytes in use, by all processes.
    pub memory_used: u64,
    pub memory_total: u64,
    /// Share of the last sample period in which a kernel ran, 0 to 1.
    pub utilisation: Option<f64>,
}

pub struct ServeSettings {
    pub server: ServerSettings,
    pub limits: RequestLimits,
    pub models: ModelSource,
    pub model_settings: ModelSettingsFor,
    /// Whether changed model files are reloaded automatically.
    pub watch: bool,
    pub start_engine: StartEngine,
    pub read_devices: ReadDevices,
}

impl ServeSettings {
    /// Settings from options; without API keys, TLS, log and GPU readings.
    pub fn new(
        options: &ServeOptions,
        models: ModelSource,
        model_settings: ModelSettingsFor,
        start_engine: StartEngine,
    ) -> Self {
        let memory = bytes_or(options.memory, 1 << 30).max(MIN_MEMORY);
        // A body that cannot fit into memory is rejected by its length, before it is sent.
        let body = bytes_or(options.max_body, 64 << 20).min(memory);
        // A CPU engine needs the processors more than the connections do.
        let share = if on_gpu(options) { 2 } else { 4 };
        let listen = options.listen.clone().filter(|addresses| !addresses.is_empty());
        Self {
            server: ServerSettings {
                listen: listen.unwrap_or_else(|| vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8000))]),
                io_threads: options.io_threads.unwrap_or((processors() / share).clamp(1, 8)),
                memory,
                connections: options.connections.unwrap_or(10_000).max(1),
                client_timeout: time_or(options.client_timeout, Duration::from_secs(30)),
                drain_timeout: time_or(options.drain_timeout, Duration::from_secs(30)),
                keys: ApiKeys::default(),
                tls: None,
                log: Log::new(LogFormat::Off, false, std::io::sink()),
            },
            limits: RequestLimits { body, elements: body, ..RequestLimits::default() },
            models,
            model_settings,
            watch: options.watch.unwrap_or(false),
            start_engine,
            read_devices: Arc::new(Vec::new),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ModelSettings {
    /// Settings of its engines, apart from the model file and the GPU.
    pub engine: EngineSettings<EngineKind>,
    /// GPUs; each gets an engine.
    pub gpus: Vec<u32>,
    pub batcher: BatcherSettings,
    /// Whether requests may share a batch; `None`: decided by the model's shapes.
    pub batch: Option<bool>,
    /// Sizes to which dynamic dimensions of a row are padded.
    pub pad_sizes: Vec<usize>,
    /// Longest time of an engine for one batch.
    pub engine_timeout: Duration,
    pub inputs: InputSettings,
    /// Smallest and largest input value, for the page's drawing pad.
    pub try_range: Option<(f64, f64)>,
}

impl ModelSettings {
    /// Settings from options whose device is resolved. `engine` names the libraries; the rest of it is set here.
    pub fn new(options: &ServeOptions, engine: EngineSettings<OnnxSettings>) -> Result<Self, SettingsError> {
        check_limits(options)?;
        let on_gpu = on_gpu(options);
        let max_rows = options.max_batch.unwrap_or(if on_gpu { 128 } else { 32 }).max(1);
        let preferred_rows = sorted(options.preferred.as_deref());
        if let Some(&rows) = preferred_rows.iter().find(|&&rows| rows > max_rows) {
            return Err(SettingsError::PreferredTooLarge { rows, max_batch: max_rows });
        }
        let graphs = options.graphs.unwrap_or(false);
        if graphs && preferred_rows.is_empty() {
            return Err(SettingsError::GraphsWithoutSizes);
        }
        let gpus = options.gpus.clone().filter(|gpus| on_gpu && !gpus.is_empty()).unwrap_or_else(|| vec![0]);
        let sessions = options.sessions.unwrap_or(1).max(1);
        // With a second lane, one batch is copied while another is computed.
        let lanes = options.lanes.unwrap_or(if on_gpu { 2 } else { 1 }).max(sessions);
        Ok(Self {
            batcher: BatcherSettings {
                max_rows,
                max_wait: time_or(options.max_wait, Duration::from_millis(2)),
                pad: graphs || options.pad_rows.unwrap_or(false),
                latency_target: options.latency_target.map(|span| span.0),
                max_queued_rows: options.queue_rows.unwrap_or(4096),
                max_queue_time: time_or(options.queue_time, Duration::from_secs(1)),
                shared_cores: !on_gpu,
                lanes: lanes * gpus.len(),
                preferred_rows: preferred_rows.clone(),
                ..BatcherSettings::default()
            },
            engine: EngineSettings {
                model: PathBuf::new(),
                library_path: engine.library_path,
                providers: match options.device.unwrap_or_default() {
                    DeviceChoice::TensorRt => vec![Provider::TensorRt, Provider::Cuda, Provider::Cpu],
                    DeviceChoice::Cuda => vec![Provider::Cuda, Provider::Cpu],
                    DeviceChoice::Cpu | DeviceChoice::Auto => vec![Provider::Cpu],
                },
                gpu: 0,
                threads: options.threads.unwrap_or_else(processors),
                lanes,
                gpu_memory: options.gpu_memory.map(|size| size.0),
                kind: EngineKind::Onnx(OnnxSettings {
                    sessions,
                    nhwc: options.nhwc.unwrap_or(false),
                    graphs: if graphs { preferred_rows } else { Vec::new() },
                    pinned: on_gpu && !options.no_pinned.unwrap_or(false),
                    io_binding: !options.no_io_binding.unwrap_or(false),
                    exhaustive: options.exhaustive.unwrap_or(false),
                    engine_cache: options.engine_cache.clone(),
                    ..engine.kind
                }),
            },
            gpus,
            batch: options.batch,
            pad_sizes: sorted(options.pad_sizes.as_deref()),
            engine_timeout: time_or(options.engine_timeout, Duration::from_secs(60)),
            inputs: InputSettings::new(options),
            try_range: options.try_model.and_then(|try_model| try_model.range),
        })
    }

    /// Returns the settings of each model: `flags`, then the model's own `cudock.toml`, then that of the server.
    /// Settings without a file of their own are resolved at once, so that a mistake in them ends the command.
    pub fn for_models(
        flags: ServeOptions,
        server: ServeOptions,
        engine: EngineSettings<OnnxSettings>,
    ) -> Result<ModelSettingsFor, SettingsError> {
        let common = Self::new(&flags.clone().or(server.clone()), engine.clone())?;
        Ok(Arc::new(move |settings_file| {
            let Some(path) = settings_file.filter(|path| path.exists()) else { return Ok(common.clone()) };
            let options = flags.clone().or(source::model_options(path)?).or(server.clone());
            Self::new(&options, engine.clone()).map_err(|error| format!("{}: {error}", path.display()))
        }))
    }

    pub(crate) fn engine_on(&self, gpu: u32, model: &Path) -> EngineSettings<EngineKind> {
        EngineSettings { gpu, model: model.to_owned(), ..self.engine.clone() }
    }

    /// Whether a GPU was requested, so that running without one is reported.
    pub fn wants_gpu(&self) -> bool {
        self.engine.providers.first().is_some_and(|&first| first != Provider::Cpu)
    }
}

/// Rejects counts beyond any machine: each unit takes memory, a thread or a file descriptor from the start.
fn check_limits(options: &ServeOptions) -> Result<(), SettingsError> {
    let limits = [
        ("max-batch", options.max_batch, 65_536),
        ("lanes", options.lanes, 64),
        ("sessions", options.sessions, 64),
        ("threads", options.threads, 1024),
        ("io-threads", options.io_threads, 256),
        ("queue-rows", options.queue_rows, 10_000_000),
    ];
    for (flag, value, max) in limits {
        if let Some(value) = value.filter(|value| *value > max) {
            return Err(SettingsError::TooLarge { flag, value, max });
        }
    }
    Ok(())
}

fn on_gpu(options: &ServeOptions) -> bool {
    options.device.is_some_and(DeviceChoice::is_gpu)
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn time_or(time: Option<TimeSpan>, default: Duration) -> Duration {
    time.map_or(default, |time| time.0)
}

fn bytes_or(size: Option<ByteSize>, default: usize) -> usize {
    size.map_or(default, |size| usize::try_from(size.0).unwrap_or(usize::MAX))
}

/// Sizes in ascending order, each once.
fn sorted(sizes: Option<&[usize]>) -> Vec<usize> {
    let mut sizes: Vec<usize> = sizes.unwrap_or_default().iter().copied().filter(|size| *size > 0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(toml: &str) -> ServeOptions {
        cudock_project::parse(Path::new("cudock.toml"), &format!("[serve]\n{toml}")).unwrap().serve
    }

    fn engine() -> EngineSettings<OnnxSettings> {
        EngineSettings::new("", OnnxSettings::new("libonnxruntime.so"))
    }

    fn resolve(toml: &str) -> Result<ModelSettings, SettingsError> {
        ModelSettings::new(&options(toml), engine())
    }

    #[test]
    fn defaults_depend_on_the_device() {
        let (cpu, gpu) = (resolve("device = 'cpu'").unwrap(), resolve("device = 'cuda'").unwrap());
        assert_eq!((cpu.batcher.max_rows, cpu.engine.lanes, cpu.wants_gpu()), (32, 1, false));
        assert_eq!((gpu.batcher.max_rows, gpu.engine.lanes, gpu.wants_gpu()), (128, 2, true));
        assert_eq!(gpu.engine.providers, [Provider::Cuda, Provider::Cpu]);
    }

    #[test]
    fn each_gpu_has_an_engine_and_its_lanes() {
        let settings = resolve("device = 'cuda'\ngpus = [1, 3]\nsessions = 3").unwrap();
        assert_eq!((settings.gpus.as_slice(), settings.engine.lanes), ([1, 3].as_slice(), 3));
        assert_eq!(settings.batcher.lanes, 6);
        assert_eq!(resolve("device = 'cpu'\ngpus = [1, 3]").unwrap().gpus, [0]);
    }

    #[test]
    fn graphs_are_captured_for_the_preferred_sizes_in_order() {
        let settings = resolve("graphs = true\npreferred = [8, 0, 1, 8]").unwrap();
        let EngineKind::Onnx(onnx) = settings.engine.kind;
        assert_eq!(onnx.graphs, [1, 8]);
        assert!(settings.batcher.pad);
        assert!(matches!(resolve("graphs = true"), Err(SettingsError::GraphsWithoutSizes)));
    }

    #[test]
    fn impossible_counts_are_rejected() {
        let error = resolve("preferred = [64]\nmax_batch = 32").unwrap_err();
        assert!(matches!(error, SettingsError::PreferredTooLarge { rows: 64, max_batch: 32 }));
        let error = resolve("lanes = 65").unwrap_err();
        assert_eq!(error.to_string(), "--lanes 65 is too large");
    }

    #[test]
    fn a_flag_wins_over_the_models_file_and_that_over_the_servers() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("cudock.toml");
        std::fs::write(&own, "[serve]\nmax_batch = 2\nlanes = 2\n").unwrap();
        let server = options("max_batch = 1\nlanes = 1\nqueue_rows = 1");
        let settings_for = ModelSettings::for_models(options("max_batch = 3"), server, engine()).unwrap();
        let settings = settings_for(Some(&own)).unwrap();
        assert_eq!((settings.batcher.max_rows, settings.engine.lanes), (3, 2));
        assert_eq!(settings.batcher.max_queued_rows, 1);
        assert_eq!(settings_for(None).unwrap().engine.lanes, 1);
        std::fs::write(&own, "[serve]\nmemory = '1GiB'\n").unwrap();
        assert!(settings_for(Some(&own)).unwrap_err().ends_with("`memory` is a setting of the whole server"));
    }
}
