//! A client's request, before it is batched or passed on.

use std::sync::Arc;
use std::time::Instant;

use cudock_server::ConnectionActivity;
use cudock_trace::RequestTrace;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

use super::headers::{self, ClientInfo};
use super::path::ConfinedPath;
use crate::state::GatewayState;

/// A client's request, and when it must be answered.
pub(crate) struct ClientRequest<'a> {
    pub(crate) head: Parts,
    pub(crate) path: ConfinedPath,
    pub(crate) body: Incoming,
    pub(crate) received: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) activity: &'a Arc<ConnectionActivity>,
}

impl ClientRequest<'_> {
    /// Until when it waits for an upstream.
    pub(crate) fn hold_until(&self, state: &GatewayState) -> Instant {
        let until = self.received.checked_add(state.settings.hold).unwrap_or(self.received);
        self.deadline.map_or(until, |deadline| deadline.min(until))
    }
}

/// Turns the headers of a client into those for an upstream.
pub(crate) fn prepare_headers(state: &GatewayState, head: &mut Parts, activity: &ConnectionActivity) {
    let client = ClientInfo {
        address: activity.peer(),
        is_secure: state.settings.server.tls.is_some(),
        has_gateway_key: state.settings.server.keys.are_required(),
    };
    headers::forward(&mut head.headers, head.uri.authority().map(Authority::as_str), client);
    if let Some(trace) = head.extensions.get::<Arc<RequestTrace>>() {
        headers::continue_trace(&mut head.headers, trace);
    }
}
