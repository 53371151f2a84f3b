//! State shared by all requests.

use std::hash::RandomState;

use cudock_server::ServerResources;

use crate::metrics::GatewayMetrics;
use crate::settings::GatewaySettings;
use crate::upstreams::Upstreams;

pub(crate) struct GatewayState {
    pub(crate) settings: GatewaySettings,
    pub(crate) resources: ServerResources,
    pub(crate) upstreams: Upstreams,
    pub(crate) metrics: GatewayMetrics,
    /// Keyed per process, so that clients cannot choose requests that share a digest.
    pub(crate) hasher: RandomState,
}
