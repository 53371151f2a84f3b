//! Settings of a server and its models: the user's options with every default resolved.

mod dialects;
mod error;
mod platform;
mod pretrained;
mod python;
mod source;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cudock_batcher::BatcherSettings;
use cudock_engine::{Engine, EngineError, EngineSettings, OutputSink, Provider};
use cudock_engine_onnx::OnnxSettings;
use cudock_engine_python::PythonSettings;
use cudock_model::is_python_model;
use cudock_project::{ByteSize, DeviceChoice, KeepLoaded, Precision, ServeOptions, TimeSpan};
use cudock_server::{RateLimiter, ServerSettings};
use cudock_tensor::RequestLimits;
use cudock_trace::ExportSettings;

pub use self::dialects::{Dialects, VertexRoutes};
pub use self::error::SettingsError;
pub use self::platform::{platform_model, platform_options};
pub use self::source::{ModelSource, locate_models, options_in};

/// Least memory budget of a server in bytes.
const MIN_MEMORY: usize = 1 << 20;

/// An engine that runs models, with the settings that only it has.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineKind {
    Onnx(OnnxSettings),
    Python(PythonSettings),
}

/// Starts an engine, which prints to the sink; called again whenever one has died.
pub type StartEngine = Arc<
    dyn Fn(&EngineSettings<EngineKind>, &OutputSink) -> Result<Box<dyn Engine>, EngineError> + Send + Sync,
>;

/// Returns the settings of a model at a path: those of the server, overridden by its own settings file if it has one. The
/// error is shown to users.
pub type ModelSettingsFor = Arc<dyn Fn(&Path, Option<&Path>) -> Result<ModelSettings, String> + Send + Sync>;

/// Reads memory and utilization of the GPUs.
pub type ReadDevices = Arc<dyn Fn() -> Vec<DeviceReading> + Send + Sync>;

#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReading {
    pub name: String,
    pub uuid: Option<String>,
    pub gpu: u32,
    /// Bytes in use, by all processes.
    pub memory_used: u64,
    pub memory_total: u64,
    /// Share of the last sample period in which a kernel ran, 0 to 1.
    pub utilization: Option<f64>,
    pub power_watts: Option<f64>,
    pub power_limit_watts: Option<f64>,
    /// Energy used since the driver was loaded.
    pub energy_millijoules: Option<u64>,
    /// Processes on the GPU, by id, and the bytes they use, as far as the driver knows them.
    pub processes: Vec<(u32, u64)>,
    pub taken: Instant,
}

pub struct ServeSettings {
    pub server: ServerSettings,
    pub limits: RequestLimits,
    pub models: ModelSource,
    pub model_settings: ModelSettingsFor,
    /// Memory for all loaded models on each device, in bytes; `None` for no limit.
    pub model_memory: Option<u64>,
    /// Whether models are loaded at their first request and not at the start.
    pub on_demand: bool,
    /// Whether changed model files are reloaded automatically.
    pub watch: bool,
    /// The other model servers whose clients are answered.
    pub dialects: Dialects,
    /// Where traces and metrics are sent.
    pub telemetry: Option<ExportSettings>,
    pub start_engine: StartEngine,
    pub read_devices: ReadDevices,
}

impl ServeSettings {
    /// Settings from options; without API keys, TLS, log, telemetry and GPU readings.
    pub fn new(
        options: &ServeOptions,
        models: ModelSource,
        model_settings: ModelSettingsFor,
        start_engine: StartEngine,
    ) -> Self {
        let listen = options.listen.clone().filter(|addresses| !addresses.is_empty());
        let listen = listen.unwrap_or_else(|| vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8000))]);
        let server = ServerSettings::new(listen);
        let memory = bytes_or(options.memory, server.memory).max(MIN_MEMORY);
        // A body that cannot fit into memory is rejected by its length, before it is sent.
        let body = bytes_or(options.max_body, 64 << 20).min(memory);
        Self {
            server: ServerSettings {
                allow_hosts: options
                    .allow_hosts
                    .iter()
                    .flatten()
                    .map(|host| host.as_str().to_owned())
                    .collect(),
                io_threads: options.io_threads.unwrap_or(server.io_threads),
                memory,
                connections: options.connections.unwrap_or(server.connections).max(1),
                client_timeout: options.client_timeout.map_or(server.client_timeout, |time| time.0),
                drain_timeout: options.drain_timeout.map_or(server.drain_timeout, |time| time.0),
                rate_limiter: options
                    .rate_limit
                    .map(|limit| Arc::new(RateLimiter::new(limit.per_second, limit.burst))),
                ..server
            },
            limits: RequestLimits { body, elements: body, ..RequestLimits::default() },
            models,
            model_settings,
            model_memory: options.model_memory.map(|size| size.0),
            on_demand: options.on_demand.unwrap_or(false) || options.model_memory.is_some(),
            watch: options.watch.unwrap_or(false),
            dialects: Dialects::new(options.routes.clone().unwrap_or_default()),
            telemetry: None,
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
    /// Host memory in bytes above which an engine is replaced.
    pub engine_memory: Option<u64>,
    /// It is unloaded after this time without a request.
    pub idle_unload: Option<Duration>,
    pub keep_loaded: KeepLoaded,
    /// The options that they are made of. Inputs are resolved from it when the signature of the model is known.
    pub options: Arc<ServeOptions>,
}

impl ModelSettings {
    /// Settings of a model at a path, from options whose device is resolved. `onnx` names the libraries of ONNX Runtime;
    /// the rest of it is set here.
    pub fn new(
        options: &ServeOptions,
        model: &Path,
        onnx: Option<EngineSettings<OnnxSettings>>,
    ) -> Result<Self, SettingsError> {
        check_limits(options)?;
        let on_gpu = on_gpu(options);
        let require_gpu = options.require_gpu.unwrap_or(false);
        if require_gpu && !on_gpu {
            return Err(SettingsError::NoGpu);
        }
        let is_python = is_python_model(model);
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
        let sessions = if is_python { 1 } else { options.sessions.unwrap_or(1).max(1) };
        // With a second lane, one batch is copied while another is computed. With a third, Python prepares one meanwhile.
        let gpu_lanes = if is_python { 3 } else { 2 };
        let lanes = options.lanes.unwrap_or(if on_gpu { gpu_lanes } else { 1 }).max(sessions);
        let (kind, library_path) = if is_python {
            (EngineKind::Python(python::python_settings(options, &preferred_rows, on_gpu)?), Vec::new())
        } else {
            let engine = onnx.ok_or(SettingsError::NoOnnxRuntime)?;
            let kind = OnnxSettings {
                sessions,
                nhwc: options.nhwc.unwrap_or(false),
                graphs: if graphs { preferred_rows.clone() } else { Vec::new() },
                pinned: on_gpu && !options.no_pinned.unwrap_or(false),
                io_binding: !options.no_io_binding.unwrap_or(false),
                exhaustive: options.exhaustive.unwrap_or(false),
                engine_cache: options.engine_cache.clone(),
                fp16: onnx_fp16(options)?,
                ..engine.kind
            };
            (EngineKind::Onnx(kind), engine.library_path)
        };
        Ok(Self {
            batcher: BatcherSettings {
                max_rows,
                max_wait: time_or(options.max_wait, Duration::from_millis(2)),
                pad: graphs
                    || (is_python && options.compile == Some(true))
                    || options.pad_rows.unwrap_or(false),
                latency_target: options.latency_target.map(|span| span.0),
                max_queued_rows: options.queue_rows.unwrap_or(4096),
                max_queue_time: time_or(options.queue_time, Duration::from_secs(1)),
                shared_cores: !on_gpu,
                lanes: lanes * gpus.len(),
                preferred_rows,
                ..BatcherSettings::default()
            },
            engine: EngineSettings {
                model: PathBuf::new(),
                library_path,
                providers: match options.device.unwrap_or_default() {
                    DeviceChoice::TensorRt => vec![Provider::TensorRt, Provider::Cuda, Provider::Cpu],
                    DeviceChoice::Cuda => vec![Provider::Cuda, Provider::Cpu],
                    DeviceChoice::Cpu | DeviceChoice::Auto => vec![Provider::Cpu],
                },
                gpu: 0,
                threads: options.threads.unwrap_or_else(processors),
                lanes,
                gpu_memory: options.gpu_memory.map(|size| size.0),
                require_gpu,
                kind,
            },
            gpus,
            batch: options.batch,
            pad_sizes: sorted(options.pad_sizes.as_deref()),
            engine_timeout: time_or(options.engine_timeout, Duration::from_secs(60)),
            engine_memory: options.engine_memory.map(|size| size.0),
            idle_unload: options.idle_unload.map(|span| span.0),
            keep_loaded: options.keep_loaded.clone().unwrap_or(KeepLoaded::All(false)),
            options: Arc::new(options.clone()),
        })
    }

    /// Returns the settings of each model: `flags`, then the model's own `cudock.toml`, then that of the server. Only flags
    /// grant trust. Settings without a file of their own are resolved at once, so that a mistake in them ends the command.
    pub fn for_models(
        flags: ServeOptions,
        server: ServeOptions,
        onnx: Option<EngineSettings<OnnxSettings>>,
    ) -> Result<ModelSettingsFor, SettingsError> {
        let server = of_file(server, &flags)?;
        let common = flags.clone().or(server.clone());
        Self::new(&common, Path::new(if onnx.is_some() { "model.onnx" } else { "model.py" }), onnx.clone())?;
        Ok(Arc::new(move |model, settings_file| {
            let Some(path) = settings_file.filter(|path| path.exists()) else {
                let settings = Self::with_described(&common, model, onnx.clone());
                return settings.map_err(|error| error.to_string());
            };
            let own = of_file(source::model_options(path)?, &flags);
            let options = own.map(|own| flags.clone().or(own).or(server.clone()));
            let settings = options.and_then(|options| Self::with_described(&options, model, onnx.clone()));
            settings.map_err(|error| format!("{}: {error}", path.display()))
        }))
    }

    /// Settings from options, and from what a pretrained model describes itself.
    fn with_described(
        options: &ServeOptions,
        model: &Path,
        onnx: Option<EngineSettings<OnnxSettings>>,
    ) -> Result<Self, SettingsError> {
        let described = pretrained::described(model, options)?;
        Self::new(&options.clone().or(described), model, onnx)
    }

    pub(crate) fn engine_on(&self, gpu: u32, model: &Path) -> EngineSettings<EngineKind> {
        EngineSettings { gpu, model: model.to_owned(), ..self.engine.clone() }
    }

    /// Whether a GPU was requested, so that running without one is reported.
    pub fn wants_gpu(&self) -> bool {
        self.engine.providers.first().is_some_and(|&first| first != Provider::Cpu)
    }
}

/// The options of a file. The author of a model may have written the file next to it, so it grants
/// no trust.
fn of_file(options: ServeOptions, flags: &ServeOptions) -> Result<ServeOptions, SettingsError> {
    if options.trust == Some(true) && flags.trust != Some(true) {
        return Err(SettingsError::TrustInFile);
    }
    Ok(ServeOptions { trust: None, ..options })
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

/// Whether an ONNX model is converted to fp16.
fn onnx_fp16(options: &ServeOptions) -> Result<bool, SettingsError> {
    match options.precision {
        None | Some(Precision::Fp32) => Ok(false),
        Some(Precision::Fp16) => Ok(true),
        Some(Precision::Bf16) => Err(SettingsError::OnnxBf16),
    }
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
    use cudock_tensor::{DType, TensorSpec};

    use super::*;

    fn options(toml: &str) -> ServeOptions {
        cudock_project::parse(Path::new("cudock.toml"), &format!("[serve]\n{toml}")).unwrap().serve
    }

    fn engine() -> EngineSettings<OnnxSettings> {
        EngineSettings::new("", OnnxSettings::new("libonnxruntime.so"))
    }

    fn resolve(toml: &str) -> Result<ModelSettings, SettingsError> {
        ModelSettings::new(&options(toml), Path::new("model.onnx"), Some(engine()))
    }

    fn resolve_python(toml: &str) -> Result<(ModelSettings, PythonSettings), SettingsError> {
        let settings = ModelSettings::new(&options(toml), Path::new("model.py"), None)?;
        let EngineKind::Python(python) = settings.engine.kind.clone() else { panic!("{settings:?}") };
        Ok((settings, python))
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
        let EngineKind::Onnx(onnx) = settings.engine.kind else { panic!("{settings:?}") };
        assert_eq!(onnx.graphs, [1, 8]);
        assert!(settings.batcher.pad);
        assert!(matches!(resolve("graphs = true"), Err(SettingsError::GraphsWithoutSizes)));
    }

    #[test]
    fn python_models_have_settings_of_their_own() {
        let (settings, python) = resolve_python("device = 'cuda'\nprecision = 'bf16'\nsessions = 8").unwrap();
        assert_eq!(
            (settings.engine.lanes, python.precision.as_deref(), python.pinned),
            (3, Some("bf16"), true)
        );
        let (settings, python) = resolve_python("device = 'cpu'\nprecision = 'fp32'\nnhwc = true").unwrap();
        assert_eq!((settings.engine.lanes, python.precision, python.channels_last), (1, None, true));
        let (settings, python) = resolve_python("compile = true\npreferred = [8, 1]").unwrap();
        assert_eq!(
            (settings.batcher.pad, python.compiled_rows, python.graphs),
            (true, vec![1, 8], Vec::new())
        );
        let (settings, python) = resolve_python("preferred = [8, 1]").unwrap();
        assert_eq!((settings.batcher.pad, python.compiled_rows), (false, Vec::new()));
        let onnx = ModelSettings::new(&options(""), Path::new("model.onnx"), None);
        assert!(matches!(onnx, Err(SettingsError::NoOnnxRuntime)));
    }

    #[test]
    fn declared_tensors_have_open_and_fixed_sizes() {
        let declared = |shape: &str| {
            resolve_python(&format!("[[serve.inputs]]\nname = 'x'\ndtype = 'float16'\nshape = {shape}"))
        };
        let (_, python) = declared("[-1, 3]").unwrap();
        assert_eq!(python.inputs, [TensorSpec::new("x", DType::F16, [None, Some(3)])]);
        assert_eq!(declared("[-1, -2]").unwrap_err().to_string(), "`x` has the size -2");
    }

    #[test]
    fn onnx_models_run_in_fp32_or_fp16() {
        for (precision, fp16) in [("fp32", false), ("fp16", true)] {
            let settings = resolve(&format!("precision = '{precision}'")).unwrap();
            assert!(matches!(settings.engine.kind, EngineKind::Onnx(onnx) if onnx.fp16 == fp16));
        }
        assert!(matches!(resolve("precision = 'bf16'"), Err(SettingsError::OnnxBf16)));
    }

    #[test]
    fn a_required_gpu_must_be_the_device() {
        assert!(resolve("device = 'cuda'\nrequire_gpu = true").unwrap().engine.require_gpu);
        assert!(matches!(resolve("device = 'cpu'\nrequire_gpu = true"), Err(SettingsError::NoGpu)));
    }

    #[test]
    fn impossible_counts_are_rejected() {
        let error = resolve("preferred = [64]\nmax_batch = 32").unwrap_err();
        assert!(matches!(error, SettingsError::PreferredTooLarge { rows: 64, max_batch: 32 }));
        let error = resolve("lanes = 65").unwrap_err();
        assert_eq!(error.to_string(), "--lanes 65 is too large");
    }

    #[test]
    fn only_flags_grant_trust() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("cudock.toml");
        let is_trusted = |flags: &str, server: &str, file: Option<&str>| {
            if let Some(text) = file {
                std::fs::write(&own, format!("[serve]\n{text}")).unwrap();
            }
            let settings_for = ModelSettings::for_models(options(flags), options(server), None)?;
            let settings = settings_for(Path::new("m.pkl"), file.map(|_| &*own)).map_err(|error| {
                assert!(error.ends_with(&SettingsError::TrustInFile.to_string()), "{error}");
                SettingsError::TrustInFile
            })?;
            let EngineKind::Python(python) = settings.engine.kind else { panic!("{settings:?}") };
            Ok(python.trust)
        };
        let trust = "trust = true";
        assert!(!is_trusted("", "", None).unwrap());
        for (server, file) in
            [("", None), (trust, None), ("", Some(trust)), ("trust = false", Some("lanes = 2"))]
        {
            assert!(is_trusted(trust, server, file).unwrap(), "{server} {file:?}");
        }
        for (server, file) in [(trust, None), (trust, Some("")), ("", Some(trust))] {
            let refused: Result<bool, SettingsError> = is_trusted("", server, file);
            assert!(matches!(refused, Err(SettingsError::TrustInFile)), "{server} {file:?}");
        }
    }

    #[test]
    fn a_flag_wins_over_the_models_file_and_that_over_the_servers() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("cudock.toml");
        std::fs::write(&own, "[serve]\nmax_batch = 2\nlanes = 2\n").unwrap();
        let server = options("max_batch = 1\nlanes = 1\nqueue_rows = 1");
        let settings_for =
            ModelSettings::for_models(options("max_batch = 3"), server, Some(engine())).unwrap();
        let settings_for = |file: Option<&Path>| settings_for(Path::new("m.onnx"), file);
        let settings = settings_for(Some(&own)).unwrap();
        assert_eq!((settings.batcher.max_rows, settings.engine.lanes), (3, 2));
        assert_eq!(settings.batcher.max_queued_rows, 1);
        assert_eq!(settings_for(None).unwrap().engine.lanes, 1);
        std::fs::write(&own, "[serve]\nmemory = '1GiB'\n").unwrap();
        assert!(settings_for(Some(&own)).unwrap_err().ends_with("`memory` is a setting of the whole server"));
    }
}
