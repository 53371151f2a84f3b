//! Words as typed, and what `cudock.toml` says, become settings with every default resolved.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cudock_engine::Provider;
use cudock_model::{ForeignFormat, foreign_format};
use cudock_project::{ByteSize, DeviceChoice, FILE_NAME, Project, Serve, Span};
use cudock_serve::{ModelSettings, ModelSettingsFor, ModelSource, ServeSettings};
use cudock_server::{ApiKeys, KeysError, Log, LogFormat, ServerSettings, TlsFiles};
use cudock_tensor::RequestLimits;

use super::args::{DeviceWord, LogWord, ServeArgs};
use super::{devices, engine, runtime};
use crate::failure::{Failure, chain};

/// The least memory a server can do with.
const LEAST_MEMORY: usize = 1 << 20;

/// Counts beyond these are mistakes: each unit takes memory, a thread or a file descriptor from the start.
const MOST: [(&str, usize); 6] = [
    ("max-batch", 65_536),
    ("lanes", 64),
    ("sessions", 64),
    ("threads", 1024),
    ("io-threads", 256),
    ("queue-rows", 10_000_000),
];

/// Refuses counts that no machine can serve.
fn refuse_excess(words: &ServeArgs, file: &Serve) -> Result<(), Failure> {
    let given = [
        words.max_batch.or(file.max_batch),
        words.lanes.or(file.lanes),
        words.sessions.or(file.sessions),
        words.threads.or(file.threads),
        words.io_threads,
        words.queue_rows.or(file.queue_rows),
    ];
    for ((name, most), given) in MOST.into_iter().zip(given) {
        if let Some(given) = given.filter(|given| *given > most) {
            return Err(Failure::input(format!("--{name} {given} is too large"))
                .hint(format!("the largest value is {most}")));
        }
    }
    Ok(())
}

/// Settings of a server.
pub(super) fn resolve(words: &ServeArgs) -> Result<ServeSettings, Failure> {
    let (models, file) = source(words)?;
    let device = device(words, &file);
    let on_gpu = device != DeviceChoice::Cpu;
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let memory = bytes(words.memory, file.memory, 1 << 30).max(LEAST_MEMORY);
    // A body that cannot fit into memory is refused by its length, before it is sent.
    let body = bytes(words.max_body, file.max_body, 64 << 20).min(memory);
    refuse_excess(words, &file)?;
    let server = ServerSettings {
        listen: addresses(words, file.listen.as_deref())?,
        // An engine on the CPU needs the processors more than the connections do.
        io_threads: words.io_threads.unwrap_or((processors / if on_gpu { 2 } else { 4 }).clamp(1, 8)),
        memory,
        connections: words.connections.max(1),
        client_timeout: time(words.client_timeout, file.client_timeout, Duration::from_secs(30)),
        drain_timeout: time(words.drain_timeout, file.drain_timeout, Duration::from_secs(30)),
        keys: keys(words.api_keys.as_deref())?,
        tls: words
            .tls_cert
            .clone()
            .zip(words.tls_key.clone())
            .map(|(certificate, key)| TlsFiles { certificate, key }),
        log: Log::new(
            match words.log {
                LogWord::Text => LogFormat::Text,
                LogWord::Json => LogFormat::Json,
                LogWord::Off => LogFormat::Off,
            },
            words.log_requests,
            std::io::stderr(),
        ),
    };
    Ok(ServeSettings {
        server,
        limits: RequestLimits { body, elements: body, ..RequestLimits::default() },
        models,
        model_settings: model_settings(words, file.clone(), device, processors)?,
        watch: words.watch || file.watch.unwrap_or(false),
        start_engine: engine::starter()?,
        read_devices: devices::reader(on_gpu),
    })
}

/// What runs the model: as the words say, else the file, else a GPU if there is one.
fn device(words: &ServeArgs, file: &Serve) -> DeviceChoice {
    let chosen = match words.device {
        Some(DeviceWord::Auto) => DeviceChoice::Auto,
        Some(DeviceWord::Cpu) => DeviceChoice::Cpu,
        Some(DeviceWord::Cuda) => DeviceChoice::Cuda,
        Some(DeviceWord::Tensorrt) => DeviceChoice::TensorRt,
        None => file.device.unwrap_or_default(),
    };
    match chosen {
        DeviceChoice::Auto if cudock_host::has_gpu() => DeviceChoice::Cuda,
        DeviceChoice::Auto => DeviceChoice::Cpu,
        chosen => chosen,
    }
}

/// How each model is run: as the server's settings say, unless its own say otherwise. The server's are tried at once,
/// so that a mistake in them ends the command.
fn model_settings(
    args: &ServeArgs,
    server: Serve,
    device: DeviceChoice,
    processors: usize,
) -> Result<ModelSettingsFor, Failure> {
    let library = runtime::provide(device != DeviceChoice::Cpu, args.offline)?;
    let common = model(args, &server, device, processors, &library)?;
    let args = args.clone();
    Ok(Arc::new(move |settings_file| {
        let Some(path) = settings_file.filter(|path| path.exists()) else { return Ok(common.clone()) };
        let own = own_settings(path)?;
        model(&args, &own.over(&server), device, processors, &library)
            .map_err(|failure| format!("{}: {}", path.display(), failure.message()))
    }))
}

/// The settings of one model of several, out of the `cudock.toml` beside it.
fn own_settings(path: &Path) -> Result<Serve, String> {
    let manifest = Project::read(path).map_err(|error| chain(&error))?.manifest;
    let serve = manifest.serve.clone();
    let rest = cudock_project::Manifest { serve: Serve::default(), ..manifest };
    if rest != cudock_project::Manifest::default() {
        return Err(format!("{}: only [serve] applies to one model of several", path.display()));
    }
    match serve.server_key() {
        Some(key) => Err(format!("{}: `{key}` is a setting of the whole server", path.display())),
        None => Ok(serve),
    }
}

fn model(
    words: &ServeArgs,
    file: &Serve,
    device: DeviceChoice,
    processors: usize,
    library: &runtime::EngineLibrary,
) -> Result<ModelSettings, Failure> {
    let on_gpu = device != DeviceChoice::Cpu;
    let max_batch = words.max_batch.or(file.max_batch).unwrap_or(if on_gpu { 128 } else { 32 }).max(1);
    let preferred = sorted(&words.preferred, file.preferred.as_deref());
    if let Some(&large) = preferred.iter().find(|&&rows| rows > max_batch) {
        let problem = format!("a preferred size of {large} rows is more than a batch may have ({max_batch})");
        return Err(Failure::input(problem).hint(format!("pass --max-batch {large}")));
    }
    let graphs = words.graphs || file.graphs.unwrap_or(false);
    if graphs && preferred.is_empty() {
        return Err(Failure::input("graphs are recorded for preferred sizes, and none are given")
            .hint("pass --preferred, as --preferred 1,8,32"));
    }
    let gpus = match (words.gpus.as_slice(), file.gpus.as_deref()) {
        _ if !on_gpu => vec![0],
        ([], None | Some([])) => vec![0],
        ([], Some(gpus)) | (gpus, _) => gpus.to_vec(),
    };
    let sessions = words.sessions.or(file.sessions).unwrap_or(1).max(1);
    // A second lane lets the copies of one batch overlap the work on another.
    let lanes = words.lanes.or(file.lanes).unwrap_or(if on_gpu { 2 } else { 1 }).max(sessions);
    Ok(ModelSettings {
        library: library.library.clone(),
        library_path: library.library_path.clone(),
        providers: match device {
            DeviceChoice::TensorRt => vec![Provider::TensorRt, Provider::Cuda, Provider::Cpu],
            DeviceChoice::Cuda => vec![Provider::Cuda, Provider::Cpu],
            DeviceChoice::Cpu | DeviceChoice::Auto => vec![Provider::Cpu],
        },
        gpus,
        threads: words.threads.or(file.threads).unwrap_or(processors),
        lanes,
        sessions,
        gpu_memory: words.gpu_memory.or(file.gpu_memory).map(|size| size.0),
        nhwc: words.nhwc || file.nhwc.unwrap_or(false),
        graphs,
        pinned: on_gpu && !words.no_pinned,
        io_binding: !words.no_io_binding,
        exhaustive: words.exhaustive || file.exhaustive.unwrap_or(false),
        engine_cache: words.engine_cache.clone(),
        batch: file.batch,
        max_batch,
        max_wait: time(words.max_wait, file.max_wait, Duration::from_millis(2)),
        preferred,
        pad_rows: words.pad_rows || file.pad_rows.unwrap_or(false),
        pad_sizes: sorted(&words.pad_sizes, file.pad_sizes.as_deref()),
        latency_target: words.latency_target.or(file.latency_target).map(|span| span.0),
        queue_rows: words.queue_rows.or(file.queue_rows).unwrap_or(4096),
        queue_time: time(words.queue_time, file.queue_time, Duration::from_secs(1)),
        engine_timeout: time(words.engine_timeout, file.engine_timeout, Duration::from_secs(60)),
        try_range: file.try_model.range,
    })
}

fn time(word: Option<Span>, key: Option<Span>, default: Duration) -> Duration {
    word.or(key).map_or(default, |span| span.0)
}

fn bytes(word: Option<ByteSize>, key: Option<ByteSize>, default: usize) -> usize {
    word.or(key).map_or(default, |size| usize::try_from(size.0).unwrap_or(usize::MAX))
}

/// Sizes of the words, else of the file, in order and each once.
fn sorted(words: &[usize], file: Option<&[usize]>) -> Vec<usize> {
    let mut sizes = if words.is_empty() { file.unwrap_or_default().to_vec() } else { words.to_vec() };
    sizes.retain(|&size| size > 0);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// What is to be served, and what its `cudock.toml` says.
fn source(words: &ServeArgs) -> Result<(ModelSource, Serve), Failure> {
    let what = &words.what;
    if let Some(ForeignFormat { name, export }) = foreign_format(what) {
        let message = format!("cannot serve {}: it is {name}, and serve runs ONNX models", what.display());
        return Err(Failure::input(message).hint(format!("export it first: {export}")));
    }
    let stem = |path: &Path| {
        path.file_stem().map_or_else(|| "model".to_owned(), |stem| stem.to_string_lossy().into_owned())
    };
    if what.is_file() && what.file_name().is_none_or(|name| name != FILE_NAME) {
        let name = words.name.clone().unwrap_or_else(|| stem(what));
        return Ok((ModelSource::File { name, file: what.clone() }, Serve::default()));
    }
    let folder = if what.is_file() {
        what.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
    } else {
        what.clone()
    };
    if !folder.is_dir() {
        return Err(Failure::input(format!("{} is neither a file nor a folder", what.display()))
            .hint("name a model file, a folder with a cudock.toml, or a folder of models"));
    }
    if !folder.join(FILE_NAME).is_file() {
        return Ok((ModelSource::Directory(folder), Serve::default()));
    }
    let project = Project::open(&folder).map_err(|error| Failure::input(chain(&error)))?;
    let models = match project.model() {
        Some(file) if file.is_dir() => ModelSource::Directory(file),
        Some(file) if !file.is_file() => {
            return Err(Failure::input(format!("{} is not there", file.display()))
                .hint(format!("correct `model` in {}", folder.join(FILE_NAME).display())));
        }
        Some(file) => ModelSource::File { name: words.name.clone().unwrap_or_else(|| project.name()), file },
        None => ModelSource::Directory(folder),
    };
    Ok((models, project.manifest.serve))
}

fn addresses(words: &ServeArgs, file: Option<&[String]>) -> Result<Vec<SocketAddr>, Failure> {
    if let Some(port) = words.port {
        return Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))]);
    }
    if !words.listen.is_empty() {
        return Ok(words.listen.clone());
    }
    match file {
        None | Some([]) => Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8000))]),
        Some(texts) => texts
            .iter()
            .map(|text| {
                text.parse().map_err(|_| {
                    Failure::input(format!("`{text}` is no address to listen on"))
                        .hint("write it as 127.0.0.1:8000")
                })
            })
            .collect(),
    }
}

fn keys(file: Option<&Path>) -> Result<ApiKeys, Failure> {
    let Some(file) = file else { return Ok(ApiKeys::default()) };
    ApiKeys::from_file(file).map_err(|error| {
        let failure = Failure::input(error.to_string());
        match error {
            KeysError::Empty { .. } => {
                failure.hint("write one key per line, or omit --api-keys to serve everybody")
            }
            KeysError::Unreadable { .. } => failure,
        }
    })
}
