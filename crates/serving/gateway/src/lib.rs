//! A batching gateway for any HTTP model server.
//!
//! Single `POST /predict` calls are collected into lists, sent as one request, and the response is split again; everything
//! else is passed on as it arrives. Requests go to the upstream with the fewest outstanding ones; while none can be
//! reached, they are held. JSON is handled as text ([`batching`]): rows come back byte for byte.
//!
//! **Unknown parts are never merged or split.** Requests share a batch only if everything but rows
//! and named, harmless headers is equal (`batch_headers`), and a response is split only if each
//! list in it is known (`answer`).

pub mod batching;
mod command;
mod error;
mod metrics;
mod requests;
mod settings;
mod state;
mod upstreams;

use std::hash::RandomState;
use std::net::SocketAddr;
use std::sync::Arc;

use cudock_server::{DrainSignal, Server, ServerError, ServerResources};

use crate::batching::queue::BatchQueue;
use crate::metrics::GatewayMetrics;
use crate::requests::handler::GatewayHandler;
use crate::state::GatewayState;
use crate::upstreams::Upstreams;
use crate::upstreams::upstream::Upstream;

pub use command::{GatewayCommandError, GatewayRequest, run};
pub use settings::{GatewaySettings, GatewaySettingsError};
pub use upstreams::tls::UpstreamTlsError;
pub use upstreams::url::UrlError;

/// A gateway whose addresses are bound.
pub struct Gateway {
    state: Arc<GatewayState>,
    server: Server,
}

impl Gateway {
    pub fn bind(mut settings: GatewaySettings) -> Result<Self, ServerError> {
        if let Some(telemetry) = settings.telemetry.take() {
            // Metrics are for Prometheus only.
            settings.server.export(telemetry, Box::new(Vec::new))?;
        }
        let resources = ServerResources::new(&settings.server, settings.max_body);
        let server = Server::bind(settings.server.clone(), &resources)?;
        let upstreams = settings.upstreams.iter().enumerate().map(|(index, url)| {
            let queue = BatchQueue::new(settings.batcher.clone());
            Arc::new(Upstream::new(index, url.clone(), settings.tls.clone(), queue))
        });
        let upstreams =
            Upstreams::new(upstreams.collect(), resources.drain.clone(), settings.server.log.clone());
        let (metrics, hasher) = (GatewayMetrics::default(), RandomState::new());
        let state = Arc::new(GatewayState { settings, resources, upstreams, metrics, hasher });
        Ok(Self { state, server })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.server.addresses()
    }

    /// The upstreams, as they are shown.
    pub fn upstreams(&self) -> Vec<String> {
        self.state.upstreams.all.iter().map(|upstream| upstream.name.clone()).collect()
    }

    /// Begins the shutdown when the caller says so.
    pub fn drain(&self) -> DrainSignal {
        self.state.resources.drain.clone()
    }

    /// Serves until SIGTERM or SIGINT; then finishes accepted requests and returns.
    pub fn run(self) -> Result<(), ServerError> {
        self.server.run(GatewayHandler::new(self.state), || Ok(()), || {})
    }
}
