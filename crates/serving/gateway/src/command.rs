//! The gateway as a command: arguments and `cudock.toml` in, a running gateway out.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use clap::Args;
use cudock_base::{Environment, ErrorKind, Excerpt, Report};
use cudock_project::{GatewayOptions, ProjectError};
use cudock_server::{KeysError, ServerArgs, ServerError};
use cudock_trace::{ExportError, ExportSettings};

use crate::{Gateway, GatewaySettings, GatewaySettingsError};

/// The port that container platforms choose.
const PORT: &str = "PORT";

/// Batch requests to any HTTP model server, balance and hold them
///
/// Single POST requests to /predict are collected into lists, sent as one request, and the answer is split again; all
/// other requests and streamed answers are passed on as they are. Reads `[gateway]` of the cudock.toml in this directory.
/// See docs/gateway.md.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  cudock gateway --to http://localhost:5000
  cudock gateway --to http://a:8000 --to http://b:8000 --max-batch 64 --latency-target 100ms
  cudock gateway --to http://localhost:5000 --row-rank 3 --output-key scores --output-key labels
  cudock gateway --to http://localhost:8000 --hold 2m --wake 'docker start model'
  curl localhost:8080/predict -H 'content-type: application/json' -d '{\"input\": [0.5, 1, 2]}'")]
pub struct GatewayArgs {
    /// Listen on this port of the loopback interface only; 0 takes a free one
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    #[command(flatten)]
    options: GatewayOptions,

    #[command(flatten)]
    server: ServerArgs,
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
pub fn run(args: &GatewayArgs, listening: impl Fn(&str, &str)) -> Result<(), GatewayCommandError> {
    let mut flags = args.options.clone();
    if let Some(port) = args.port {
        flags.listen = Some(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))]);
    }
    let options = flags.or(GatewayOptions::in_directory(Path::new("."))?);
    let mut settings = GatewaySettings::new(&options, std::env::var(PORT).ok().as_deref())?;
    let environment = Environment::of_process();
    settings.telemetry =
        ExportSettings::new(options.otlp_endpoint.as_deref(), "cudock-gateway", &environment)?;
    args.server.apply(&mut settings.server)?;
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    let gateway = Gateway::bind(settings)?;
    let upstreams = gateway.upstreams().join(", ");
    for address in gateway.addresses() {
        listening(&format!("{scheme}://{address}"), &upstreams);
    }
    Ok(gateway.run()?)
}
