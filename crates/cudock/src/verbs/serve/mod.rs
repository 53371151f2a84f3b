//! `cudock serve`: arguments and `cudock.toml` in, a server out.

mod args;
mod devices;
mod engine;
pub(crate) mod runtime;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use cudock_base::Environment;
use cudock_serve::{
    LoadError, ModelService, ModelSettings, ServeSettings, Server, ServerError, VertexRoutes, locate_models,
    platform_model, platform_options,
};
use cudock_server::{ApiKeys, KeysError, Log, LogFormat, ServerError as HttpServerError, TlsFiles};
use cudock_trace::ExportSettings;

use self::args::LogChoice;
pub(crate) use self::args::ServeArgs;
pub(crate) use self::engine::run as run_engine;
use crate::failure::{Failure, Outcome, chain};
use crate::output::{BOLD, DIM, status, styled};

pub(super) fn run(args: &ServeArgs) -> Result<Outcome, Failure> {
    let settings = settings(args)?;
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    let service = Arc::new(ModelService::new(settings));
    let server = Server::bind(service).map_err(|error| failure(&error))?;
    for address in server.addresses() {
        status(format!("{} {scheme}://{address}", styled(DIM, "listening on")));
    }
    let first = server.addresses().first().copied();
    let mut ready = |service: &ModelService| {
        let mut names: Vec<String> = service.models().into_iter().map(|entry| entry.name).collect();
        names.dedup();
        if let Some(address) = first {
            status(format!(
                "{} {}: open {scheme}://{address}/, or POST to {scheme}://{address}/predict",
                styled(BOLD, "ready"),
                names.join(", "),
            ));
        }
    };
    server.run(&mut ready).map_err(|error| failure(&error))?;
    Ok(Outcome::Yes)
}

/// Combines the arguments with the `cudock.toml` of what is served.
fn settings(args: &ServeArgs) -> Result<ServeSettings, Failure> {
    let mut flags = args.options.clone();
    let environment = Environment::of_process();
    let path = args.path.clone();
    let path = path.or_else(|| platform_model(flags.routes.as_deref().unwrap_or_default(), &environment));
    let (models, file) = locate_models(path.as_deref().unwrap_or(Path::new(".")), args.name.as_deref())?;
    if let Some(port) = args.port {
        flags.listen = Some(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))]);
    }
    let dialects = flags.routes.as_ref().or(file.routes.as_ref()).map(Vec::as_slice).unwrap_or_default();
    let platform = platform_options(dialects, &environment)?;
    let file = file.or(platform);
    let device = flags.device.or(file.device).unwrap_or_default().resolve(cudock_host::has_gpu);
    flags.device = Some(device);
    let onnx = if models.is_python() {
        None
    } else {
        Some(runtime::provide(Path::new(""), device.is_gpu(), args.offline)?)
    };
    let model_settings = ModelSettings::for_models(flags.clone(), file.clone(), onnx)?;
    let start_engine = engine::starter()?;
    let options = flags.or(file);
    let mut settings = ServeSettings::new(&options, models, model_settings, start_engine);
    settings.telemetry = ExportSettings::new(options.otlp_endpoint.as_deref(), "cudock", &environment)?;
    let tls = args.tls_cert.clone().zip(args.tls_key.clone());
    settings.server.tls = tls.map(|(certificate, key)| TlsFiles { certificate, key });
    settings.dialects.vertex = VertexRoutes::of(&environment);
    settings.server.keys = keys(args.api_keys.as_deref())?;
    let format = match args.log {
        LogChoice::Text => LogFormat::Text,
        LogChoice::Json => LogFormat::Json,
        LogChoice::Off => LogFormat::Off,
    };
    settings.server.log = Log::new(format, args.access_log, std::io::stderr());
    settings.read_devices = devices::reader(device.is_gpu());
    Ok(settings)
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

fn failure(error: &ServerError) -> Failure {
    let text = chain(error);
    match error {
        ServerError::Http(HttpServerError::Listen { .. }) => {
            Failure::outside(text).hint("another program may use the port; `--port 0` takes a free one")
        }
        ServerError::Load(LoadError::Repository(_)) => Failure::input(text)
            .hint("name a model file, a directory with a cudock.toml, or a directory of models"),
        ServerError::Load(LoadError::None(_)) | ServerError::Http(HttpServerError::Tls(_)) => {
            Failure::input(text)
        }
        ServerError::Load(LoadError::NoGpu(_)) => {
            Failure::outside(text).hint("`cudock doctor` shows why the GPU cannot be used")
        }
        ServerError::Http(HttpServerError::System(_)) => Failure::outside(text),
    }
}
