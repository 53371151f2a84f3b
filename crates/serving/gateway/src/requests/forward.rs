//! Passes requests and answers on as they arrive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudock_server::{ConnectionActivity, HttpRejection, MonitoredBody};
use hyper::header::{self, HeaderMap};
use hyper::{Method, Request, Response};
use tokio::sync::oneshot;

use crate::error::GatewayError;
use crate::requests::body::OutgoingBody;
use crate::requests::headers;
use crate::requests::path::ConfinedPath;
use crate::requests::response_body::{GatewayBody, UpstreamBody};
use crate::state::GatewayState;
use crate::upstreams::upstream::{SendError, Upstream};

/// How often a request that may be repeated is sent after an upstream was lost.
pub(crate) const MAX_LOST: usize = 2;

/// A request on its way to an upstream, with the headers that the upstream gets.
pub(crate) struct ForwardedRequest {
    pub(crate) method: Method,
    pub(crate) path: ConfinedPath,
    pub(crate) headers: HeaderMap,
    pub(crate) body: OutgoingBody,
    /// Fails once the client's body is complete, and gets the reason if it is rejected; `None` if it is complete.
    pub(crate) body_end: Option<oneshot::Receiver<HttpRejection>>,
    /// Until when it waits for an upstream; `None` if it does not.
    pub(crate) hold_until: Option<Instant>,
}

/// Forwards a request to an upstream that is available.
pub(crate) async fn forward(
    state: &GatewayState,
    request: ForwardedRequest,
    activity: &Arc<ConnectionActivity>,
) -> Result<Response<GatewayBody>, GatewayError> {
    let ForwardedRequest { method, path, headers, mut body, mut body_end, hold_until } = request;
    let mut lost = 0;
    loop {
        let lease = match hold_until {
            Some(until) => state.upstreams.wait(until).await?,
            None => state.upstreams.pick().ok_or(GatewayError::Unavailable { waited: Duration::ZERO })?,
        };
        let upstream = Arc::clone(&lease.upstream);
        let again = is_repeatable(state, &method).then(|| body.copy()).flatten();
        let timeout = state.settings.timeout;
        let sent = tokio::select! {
            // The reason of a rejected body comes before the failure of its request.
            biased;
            rejection = rejected_or_late(&mut body_end, timeout) => {
                if let Some(rejection) = rejection {
                    return Err(rejection.into());
                }
                upstream.on_failure();
                return Err(GatewayError::UpstreamTimeout { upstream: upstream.name.clone(), timeout });
            }
            sent = lease.send(outgoing(&upstream, &method, &path, &headers, body)) => sent,
        };
        match sent {
            Ok((response, exchange)) => {
                if response.status().is_server_error() {
                    upstream.on_failure();
                } else {
                    upstream.on_success();
                }
                let (mut head, body) = response.into_parts();
                headers::remove_connection_fields(&mut head.headers);
                let body = UpstreamBody::new(body, exchange, timeout);
                let body = GatewayBody::Upstream(MonitoredBody::new(body, activity));
                return Ok(Response::from_parts(head, body));
            }
            Err(SendError::Unsent(unsent)) => {
                state.upstreams.set_reachable(&upstream, Err("cannot connect".to_owned()));
                body = unsent.into_body();
            }
            Err(SendError::Lost(reason)) => {
                upstream.on_failure();
                lost += 1;
                match again {
                    Some(again) if lost <= MAX_LOST => body = again,
                    _ => {
                        return Err(upstream.failure(reason));
                    }
                }
            }
        }
    }
}

/// Whether a request may be sent again although the upstream may have processed it.
fn is_repeatable(state: &GatewayState, method: &Method) -> bool {
    method.is_safe() || (*method == Method::POST && state.settings.retry_posts)
}

fn outgoing(
    upstream: &Upstream,
    method: &Method,
    path: &ConfinedPath,
    headers: &HeaderMap,
    body: OutgoingBody,
) -> Request<OutgoingBody> {
    let mut request = Request::new(body);
    *request.method_mut() = method.clone();
    *request.uri_mut() = path.target(&upstream.url);
    *request.headers_mut() = headers.clone();
    request.headers_mut().insert(header::HOST, upstream.url.authority.clone());
    request
}

/// Waits until the client's body is rejected, or it is complete and the time for an answer is over (`None`).
async fn rejected_or_late(
    body_end: &mut Option<oneshot::Receiver<HttpRejection>>,
    timeout: Duration,
) -> Option<HttpRejection> {
    if let Some(end) = body_end {
        let rejection = end.await.ok();
        *body_end = None;
        if rejection.is_some() {
            return rejection;
        }
    }
    tokio::time::sleep(timeout).await;
    None
}
