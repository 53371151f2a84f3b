//! The HTTP server of the models.

use std::net::SocketAddr;
use std::sync::Arc;

use cudock_base::{ErrorKind, Report};

use super::handler::InferenceHandler;
use super::telemetry;
use crate::service::{LoadError, ModelService};

/// An error that prevents the server from running.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Http(#[from] cudock_server::ServerError),
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl Report for ServerError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Http(error) => error.kind(),
            Self::Load(LoadError::NoGpu(_)) => ErrorKind::Outside,
            Self::Load(LoadError::Repository(_) | LoadError::None(_)) => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Http(error) => return error.hints(),
            Self::Load(LoadError::None(_)) => return Vec::new(),
            Self::Load(LoadError::Repository(_)) => {
                "name a model file, a directory with a cudock.toml, or a directory of models"
            }
            Self::Load(LoadError::NoGpu(_)) => "`cudock doctor` shows why the GPU cannot be used",
        };
        vec![hint.to_owned()]
    }
}

pub struct Server {
    service: Arc<ModelService>,
    http: cudock_server::Server,
}

impl Server {
    /// Binds the addresses before the models are loaded, so that they are known and taken.
    pub fn bind(service: Arc<ModelService>) -> Result<Self, ServerError> {
        let mut settings = service.settings.server.clone();
        if let Some(telemetry) = service.settings.telemetry.clone() {
            let metrics = telemetry::metrics(&service);
            settings.export(telemetry, metrics).map_err(cudock_server::ServerError::System)?;
        }
        service.set_exporter(settings.exporter.clone());
        let http = cudock_server::Server::bind(settings, &service.resources)?;
        Ok(Self { service, http })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.http.addresses()
    }

    /// Loads the models and serves them until SIGTERM or SIGINT; then finishes accepted requests and returns. `ready`
    /// is called once the models are loaded.
    // Not generic, so that the server is compiled here, where everything is optimized, and not in each program.
    pub fn run(self, ready: &mut dyn FnMut(&ModelService)) -> Result<(), ServerError> {
        let (handler, loading) = (InferenceHandler(Arc::clone(&self.service)), Arc::clone(&self.service));
        self.http.run(handler, move || Ok(loading.load()?), || ready(&self.service))
    }
}
