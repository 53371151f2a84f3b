//! `cudock serve`: arguments and `cudock.toml` in, a server out.

mod args;
mod devices;
mod engine;
pub(crate) mod runtime;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use cudock_serve::{
    LoadError, ModelService, ModelSettings, ServeSettings, Server, ServerError, locate_models, options_in,
};
use cudock_server::{ApiKeys, KeysError, Log, LogFormat, ServerError as HttpServerError, TlsFiles};

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
    let (models, file) = locate_models(&args.path, args.name.as_deref())?;
    let file = args.settings.as_ref().map_or(Ok(file), |other| options_in(other, &args.path))?;
    let mut flags = args.options.clone();
    if let Some(port) = args.port {
        flags.listen = Some(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))]);
    }
    let device = flags.device.or(file.device).unwrap_or_default().resolve(cudock_host::has_gpu);
    flags.device = Some(device);
    let onnx = if models.is_python() {
        None
    } else {
        Some(runtime::provide(Path::new(""), device.is_gpu(), args.offline)?)
    };
    let model_settings = ModelSettings::for_models(flags.clone(), file.clone(), onnx)?;
    let start_engine = engine::starter()?;
    let mut settings = ServeSettings::new(&flags.or(file), models, model_settings, start_engine);
    let tls = args.tls_cert.clone().zip(args.tls_key.clone());
    settings.server.tls = tls.map(|(certificate, key)| TlsFiles { certificate, key });
    settings.server.keys = keys(args.api_keys.as_deref())?;
    let format = match args.log {
        LogChoice::Text => LogFormat::Text,
        LogChoice::Json => LogFormat::Json,
        LogChoice::Off => LogFormat::Off,
    };
    settings.server.log = Log::new(format, args.log_requests, std::io::stderr());
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
