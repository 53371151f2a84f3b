//! The gateway's handler of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cudock_server::{ConnectionActivity, Effect, Handler, HttpRejection, StallDetector};
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;

use crate::batching::batch;
use crate::batching::predict::{is_batchable, predict};
use crate::error::GatewayError;
use crate::metrics::{self, RequestKind};
use crate::requests::body::{ClientBody, OutgoingBody};
use crate::requests::client_request::{ClientRequest, prepare_headers};
use crate::requests::forward::{self, ForwardedRequest};
use crate::requests::path::ConfinedPath;
use crate::requests::response_body::GatewayBody;
use crate::requests::{predictions, reads};
use crate::state::GatewayState;
use crate::upstreams::{health, scale};

/// Paths of the gateway itself; all others are those of the upstreams.
const OWN_PATHS: &str = "/_gateway/";

pub(crate) struct GatewayHandler {
    state: Arc<GatewayState>,
    /// Whether the tasks that exist once are running.
    has_tasks: AtomicBool,
}

impl GatewayHandler {
    pub(crate) fn new(state: Arc<GatewayState>) -> Self {
        Self { state, has_tasks: AtomicBool::new(false) }
    }
}

impl Handler for GatewayHandler {
    type Body = GatewayBody;

    async fn handle(
        &self,
        request: Request<Incoming>,
        activity: &Arc<ConnectionActivity>,
    ) -> Response<GatewayBody> {
        let (state, received) = (&self.state, Instant::now());
        let (head, body) = request.into_parts();
        if let Some(name) = head.uri.path().strip_prefix(OWN_PATHS) {
            return own_path(state, name, &head.headers).unwrap_or_else(|error| error_response(&error));
        }
        let kind = if is_batchable(state, &head) { RequestKind::Batched } else { RequestKind::Forwarded };
        let outcome = dispatch(state, kind, head, body, received, activity).await;
        let response = outcome.unwrap_or_else(|error| error_response(&error));
        state.metrics.responded(kind, response.status(), received.elapsed());
        response
    }

    /// Requests that neither read nor predict may change an upstream. A held request starts one; a
    /// probe is not held.
    fn effect(&self, request: &Request<Incoming>) -> Effect {
        let (settings, path) = (&self.state.settings, request.uri().path());
        let is_prediction =
            *request.method() == Method::POST && (path == settings.path || predictions::is_prediction(path));
        if !request.method().is_safe() && !is_prediction {
            return Effect::Changes;
        }
        let is_held =
            !path.starts_with(OWN_PATHS) && (is_prediction || path != settings.health_path.get().path());
        if is_held && settings.wake.is_some() { Effect::Starts } else { Effect::None }
    }

    fn reject(&self, _: &Request<Incoming>, rejection: HttpRejection) -> Response<GatewayBody> {
        error_response(&rejection.into())
    }

    fn start_io_thread(&self) {
        let state = Arc::clone(&self.state);
        tokio::spawn(reads::install(move || {
            for upstream in &state.upstreams.all {
                upstream.queue.on_reads_drained();
                batch::dispatch(&state, upstream);
            }
        }));
        if self.has_tasks.swap(true, Ordering::AcqRel) {
            return;
        }
        for upstream in &self.state.upstreams.all {
            tokio::spawn(health::watch(Arc::clone(&self.state), Arc::clone(upstream)));
        }
        if let Some(command) = self.state.settings.wake.clone() {
            tokio::spawn(scale::wake(Arc::clone(&self.state), command));
        }
        if let Some(command) = self.state.settings.idle_stop.clone() {
            tokio::spawn(scale::stop(Arc::clone(&self.state), command, self.state.settings.idle_after));
        }
    }
}

async fn dispatch(
    state: &Arc<GatewayState>,
    kind: RequestKind,
    head: Parts,
    body: Incoming,
    received: Instant,
    activity: &Arc<ConnectionActivity>,
) -> Result<Response<GatewayBody>, GatewayError> {
    state.settings.server.admit(&head.headers, activity)?;
    if head.method == Method::CONNECT {
        return Err(HttpRejection::BadRequest("CONNECT is not supported".to_owned()).into());
    }
    let deadline = timeout(&head.headers)?.and_then(|timeout| received.checked_add(timeout));
    let path = head.uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    let path = ConfinedPath::new(path, &state.settings.upstreams)?;
    let request = ClientRequest { head, path, body, received, deadline, activity };
    let responding = async {
        match kind {
            RequestKind::Batched => predict(state, request).await,
            RequestKind::Forwarded => stream(state, request).await,
        }
    };
    match deadline {
        None => responding.await,
        Some(deadline) => tokio::time::timeout_at(deadline.into(), responding)
            .await
            .unwrap_or(Err(GatewayError::DeadlineExceeded)),
    }
}

/// The deadline of a client, as `cudock serve` reads it.
fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, HttpRejection> {
    let Some(value) = headers.get("x-timeout-ms") else { return Ok(None) };
    let milliseconds = value.to_str().ok().and_then(|text| text.trim().parse::<f64>().ok());
    let milliseconds = milliseconds.filter(|number| (0.0..1e9).contains(number));
    let rejection = || HttpRejection::BadRequest("header x-timeout-ms is not a number".to_owned());
    milliseconds
        .map(|milliseconds| Some(Duration::from_secs_f64(milliseconds / 1000.0)))
        .ok_or_else(rejection)
}

/// Passes a request on as it arrives.
async fn stream(
    state: &Arc<GatewayState>,
    request: ClientRequest<'_>,
) -> Result<Response<GatewayBody>, GatewayError> {
    let until = request.hold_until(state);
    let ClientRequest { mut head, path, body, activity, .. } = request;
    let (limit, settings) = (state.settings.max_body, &state.settings.server);
    if body.size_hint().lower() > limit as u64 {
        return Err(HttpRejection::BodyTooLarge { limit }.into());
    }
    // A probe must not start the upstream that it checks.
    let is_probe = head.method.is_safe() && head.uri.path() == state.settings.health_path.get().path();
    prepare_headers(state, &mut head, activity);
    let stall = StallDetector::new(settings.client_timeout);
    let (body, end) = ClientBody::new(body, limit, stall, state.resources.drain.clone(), activity);
    let request = ForwardedRequest {
        method: head.method,
        path,
        headers: head.headers,
        body: OutgoingBody::client(body),
        body_end: Some(end),
        hold_until: (!is_probe).then_some(until),
    };
    forward::forward(state, request, activity).await
}

/// Answers a request to the gateway itself.
fn own_path(
    state: &GatewayState,
    name: &str,
    request: &HeaderMap,
) -> Result<Response<GatewayBody>, GatewayError> {
    let is_draining = state.resources.drain.has_begun();
    let is_any_reachable = state.upstreams.is_any_reachable();
    let is_ready = !is_draining
        && !state.resources.budget.is_exhausted()
        && (is_any_reachable || state.settings.wake.is_some());
    match name {
        "live" => return Ok(status(true, "live")),
        "ready" => return Ok(status(is_ready, "ready")),
        _ => {}
    }
    if !state.settings.server.keys.is_authorized(request) {
        return Err(HttpRejection::Unauthorized.into());
    }
    match name {
        "health" => Ok(health_response(state, is_any_reachable)),
        "metrics" => {
            let text = metrics::exposition(state);
            Ok(respond(StatusCode::OK, "text/plain; version=0.0.4", text))
        }
        _ => Err(GatewayError::NotFound(format!("{OWN_PATHS}{name}"))),
    }
}

fn health_response(state: &GatewayState, is_any_reachable: bool) -> Response<GatewayBody> {
    let now = Instant::now();
    let upstreams: Vec<_> = state
        .upstreams
        .all
        .iter()
        .map(|upstream| {
            let availability = upstream.availability();
            json!({
                "url": upstream.name,
                "reachable": availability.is_reachable(),
                "ejected": availability.is_ejected(now),
                "outstanding": upstream.outstanding(),
            })
        })
        .collect();
    let are_all_reachable = state.upstreams.all.iter().all(|upstream| upstream.availability().is_reachable());
    let (code, text) = match (is_any_reachable, are_all_reachable) {
        (true, true) => (StatusCode::OK, "healthy"),
        (true, false) => (StatusCode::OK, "degraded"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    let body = json!({ "status": text, "held": state.upstreams.held(), "upstreams": upstreams });
    respond(code, "application/json", body.to_string())
}

fn status(is_ok: bool, name: &str) -> Response<GatewayBody> {
    let code = if is_ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    respond(code, "application/json", json!({ name: is_ok }).to_string())
}

fn error_response(error: &GatewayError) -> Response<GatewayBody> {
    let body = json!({ "error": error.to_string() }).to_string();
    let mut response = respond(error.status(), "application/json", body);
    error.write_headers(response.headers_mut());
    response
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response<GatewayBody> {
    let mut response = Response::new(GatewayBody::whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
