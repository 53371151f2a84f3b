//! Serving models: a request and `cudock.toml` in, a server out.

mod devices;
mod engine;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_base::Environment;
use cudock_project::ServeOptions;
use cudock_serve::{
    ModelService, ModelSettings, ServeSettings, Server, VertexRoutes, locate_models, options_in,
    platform_model, platform_options,
};
use cudock_server::{API_KEYS, ServerOptions};
use cudock_trace::ExportSettings;

pub(crate) use self::engine::{run as run_engine, run_owner as run_engine_owner};
use crate::failure::{Failure, Outcome};
use crate::output::{BOLD, DIM, status, styled};
use crate::steps::runtime;

/// The options of a command that serves models.
#[derive(Debug, Default)]
pub(crate) struct ServeRequest {
    /// A model file, a project or a directory of models; by default what the platform names, or this directory.
    pub(crate) path: Option<PathBuf>,
    /// A port of the loopback interface, in place of the addresses of the options.
    pub(crate) port: Option<u16>,
    /// The name of a single model.
    pub(crate) name: Option<String>,
    /// They override those of the project.
    pub(crate) options: ServeOptions,
    /// A file whose `serve` section is used in place of the project's.
    pub(crate) settings: Option<PathBuf>,
    pub(crate) server: ServerOptions,
    /// Whether nothing may be downloaded.
    pub(crate) offline: bool,
}

impl ServeRequest {
    /// A project as its file describes it.
    pub(crate) fn of_project(directory: &Path, port: Option<u16>, offline: bool) -> Self {
        let api_keys = std::env::var_os(API_KEYS).map(PathBuf::from);
        let server = ServerOptions { api_keys, ..ServerOptions::default() };
        Self { path: Some(directory.to_owned()), port, offline, server, ..Self::default() }
    }
}

/// Serves until the process receives a termination signal.
pub(crate) fn serve(request: &ServeRequest) -> Result<Outcome, Failure> {
    let settings = settings(request)?;
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    let service = Arc::new(ModelService::new(settings));
    let server = Server::bind(service)?;
    for address in server.addresses() {
        status(format!("{} {scheme}://{address}", styled(DIM, "listening on")));
    }
    let first = server.addresses().first().copied();
    let mut ready = |service: &ModelService| {
        let names = service.ready_names();
        if let Some(address) = first.filter(|_| !names.is_empty()) {
            status(format!(
                "{} {}: open {scheme}://{address}/, or POST to {scheme}://{address}/predict",
                styled(BOLD, "ready"),
                names.join(", "),
            ));
        }
    };
    server.run(&mut ready)?;
    Ok(Outcome::Yes)
}

/// Combines the request with the `cudock.toml` of what is served.
fn settings(request: &ServeRequest) -> Result<ServeSettings, Failure> {
    let mut flags = request.options.clone();
    let environment = Environment::of_process();
    let path = request.path.clone();
    let path = path.or_else(|| platform_model(flags.routes.as_deref().unwrap_or_default(), &environment));
    let path = path.as_deref().unwrap_or(Path::new("."));
    let (models, file) = locate_models(path, request.name.as_deref())?;
    let file = request.settings.as_ref().map_or(Ok(file), |other| options_in(other, path))?;
    if let Some(port) = request.port {
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
        Some(runtime::provide(Path::new(""), device.is_gpu(), request.offline)?)
    };
    let model_settings = ModelSettings::for_models(flags.clone(), file.clone(), onnx)?;
    let start_engine = engine::starter()?;
    let options = flags.or(file);
    let mut settings = ServeSettings::new(&options, models, model_settings, start_engine);
    settings.telemetry = ExportSettings::new(options.otlp_endpoint.as_deref(), "cudock", &environment)?;
    settings.dialects.vertex = VertexRoutes::of(&environment);
    request.server.apply(&mut settings.server)?;
    settings.read_devices = devices::reader(device.is_gpu());
    Ok(settings)
}
