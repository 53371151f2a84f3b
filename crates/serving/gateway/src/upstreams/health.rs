//! Active health checks.

use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::header::{self, HeaderValue};

use crate::requests::body::OutgoingBody;
use crate::state::GatewayState;
use crate::upstreams::upstream::Upstream;

/// Interval of the checks of a reachable upstream, and of one that is not.
const INTERVAL: Duration = Duration::from_secs(5);
const DOWN_INTERVAL: Duration = Duration::from_millis(500);
/// The latter while requests wait for an upstream.
const WAITING_INTERVAL: Duration = Duration::from_millis(50);
/// Longest time for an answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Checks an upstream for as long as the gateway runs.
pub(crate) async fn watch(state: Arc<GatewayState>, upstream: Arc<Upstream>) {
    let patience = state.settings.health_timeout;
    loop {
        if let Some(outcome) = check(&state, &upstream).await {
            state.upstreams.set_reachable(&upstream, outcome);
        }
        let pause = if upstream.availability().is_reachable() {
            // A check that nothing could be said after is repeated when its upstream has been silent for too long.
            let left = patience.saturating_sub(upstream.silence());
            INTERVAL.min(left.max(WAITING_INTERVAL))
        } else if state.upstreams.held() > 0 {
            WAITING_INTERVAL
        } else {
            DOWN_INTERVAL
        };
        let early = async {
            upstream.recheck.notified().await;
            tokio::time::sleep(WAITING_INTERVAL).await;
        };
        // Each check also looks for waiting requests.
        let _ = tokio::time::timeout(pause, early).await;
    }
}

/// `None` if nothing can be said: an upstream that works on a request may have no thread for a check. One that has sent
/// nothing at all for too long is frozen.
async fn check(state: &GatewayState, upstream: &Upstream) -> Option<Result<(), String>> {
    let patience = state.settings.health_timeout;
    let mut request = Request::new(OutgoingBody::empty());
    *request.uri_mut() = state.settings.health_path.target(&upstream.url);
    let headers = request.headers_mut();
    headers.insert(header::HOST, upstream.url.authority.clone());
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static("cudock-gateway"));
    match tokio::time::timeout(TIMEOUT.min(patience), upstream.send_once(request)).await {
        Ok(Ok(status)) => {
            // A server without such a path is as good as one that is healthy.
            let has_no_check = !state.settings.requires_health_path && status.is_client_error();
            let is_healthy = status.is_success() || has_no_check;
            Some(if is_healthy { Ok(()) } else { Err(format!("health check: {status}")) })
        }
        Ok(Err(error)) => Some(Err(error.to_string())),
        Err(_) if upstream.outstanding() == 0 => Some(Err("health check timed out".to_owned())),
        Err(_) if upstream.silence() < patience => None,
        Err(_) => {
            Some(Err(format!("no answer to requests or health checks for {} ms", patience.as_millis())))
        }
    }
}
