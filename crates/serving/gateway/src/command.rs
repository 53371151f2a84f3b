//! The gateway as a command: arguments and `cudock.toml` in, a running gateway out.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use cudock_base::{Environment, ErrorKind, Excerpt, Report};
use cudock_project::{GatewayOptions, ProjectError};
use cudock_server::{KeysError, ServerError, ServerOptions};
use cudock_trace::{ExportError, ExportSettings};

use crate::{Gateway, GatewaySettings, GatewaySettingsError};

/// The port that container platforms choose.
const PORT: &str = "PORT";

/// The options of `cudock gateway`.
#[derive(Clone, Debug, Default)]
pub struct GatewayRequest {
    /// A port of the loopback interface, in place of the addresses of the options.
    pub port: Option<u16>,
    /// They override those of the project in the working directory.
    pub options: GatewayOptions,
    pub server: ServerOptions,
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum GatewayCommandError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Settings(#[from] GatewaySettingsError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Server(#[from] ServerError),
}

impl GatewayCommandError {
    fn inner(&self) -> &dyn Report {
        match self {
            Self::Project(error) => error,
            Self::Settings(error) => error,
            Self::Export(error) => error,
            Self::Keys(error) => error,
            Self::Server(error) => error,
        }
    }
}

impl Report for GatewayCommandError {
    fn kind(&self) -> ErrorKind {
        self.inner().kind()
    }

    fn hints(&self) -> Vec<String> {
        self.inner().hints()
    }

    fn excerpt(&self) -> Option<Excerpt<'_>> {
        self.inner().excerpt()
    }
}

/// Runs a gateway until SIGTERM or SIGINT. `listening` is called with each URL that it listens on, and its upstreams.
pub fn run(request: GatewayRequest, listening: impl Fn(&str, &str)) -> Result<(), GatewayCommandError> {
    let GatewayRequest { port, options: mut flags, server } = request;
    if let Some(port) = port {
        flags.listen = Some(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))]);
    }
    let options = flags.or(GatewayOptions::in_directory(Path::new("."))?);
    let mut settings = GatewaySettings::new(&options, std::env::var(PORT).ok().as_deref())?;
    let environment = Environment::of_process();
    settings.telemetry =
        ExportSettings::new(options.otlp_endpoint.as_deref(), "cudock-gateway", &environment)?;
    server.apply(&mut settings.server)?;
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    let gateway = Gateway::bind(settings)?;
    let upstreams = gateway.upstreams().join(", ");
    for address in gateway.addresses() {
        listening(&format!("{scheme}://{address}"), &upstreams);
    }
    Ok(gateway.run()?)
}
