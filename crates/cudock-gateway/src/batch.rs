//! Runs batches: joins requests, sends them, splits the answer, and finds the request at fault where one is rejected.

use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use cudock_base::text::error_chain;
use cudock_batcher::Ticket;
use cudock_server::{HttpRejection, Reservation};
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap};
use hyper::http::response::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::oneshot;

use crate::body::{GatewayBody, OutgoingBody};
use crate::error::GatewayError;
use crate::headers;
use crate::queue::{BatchResult, QueueAction, QueuedBatch, QueuedRequest, Unanswered};
use crate::reads;
use crate::rows::{RequestRows, join};
use crate::state::GatewayState;
use crate::upstream::{Lease, SendError, Upstream};

/// A request that may share a batch.
pub(crate) struct BatchableRequest {
    pub(crate) rows: RequestRows,
    target: PathAndQuery,
    headers: HeaderMap,
    /// A digest of everything that requests of a batch have in common.
    pub(crate) bucket: u64,
    _reservation: Reservation,
}

impl BatchableRequest {
    pub(crate) fn new(
        state: &GatewayState,
        rows: RequestRows,
        target: PathAndQuery,
        headers: HeaderMap,
        reservation: Reservation,
    ) -> Self {
        let mut hasher = state.hasher.build_hasher();
        hasher.write(target.as_str().as_bytes());
        hasher.write_u64(state.settings.ignored_headers.digest(&headers, &state.hasher));
        rows.hash_envelope(&mut hasher);
        Self { rows, target, headers, bucket: hasher.finish(), _reservation: reservation }
    }
}

/// The answer to one request of a batch.
#[derive(Clone)]
pub(crate) struct BatchAnswer {
    status: StatusCode,
    headers: HeaderMap,
    pieces: Vec<Bytes>,
}

impl BatchAnswer {
    pub(crate) fn into_response(self) -> Response<GatewayBody> {
        let mut response = Response::new(GatewayBody::pieces(self.pieces));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// A queued request; it is withdrawn when this is dropped.
struct Submission<'a> {
    upstream: &'a Upstream,
    ticket: Ticket,
}

impl Drop for Submission<'_> {
    fn drop(&mut self) {
        self.upstream.queue.withdraw(self.ticket);
    }
}

/// Queues a request and waits for its answer.
pub(crate) async fn submit(
    state: &Arc<GatewayState>,
    lease: &Lease,
    request: &Arc<BatchableRequest>,
    deadline: Option<Instant>,
) -> BatchResult {
    let (reply, answer) = oneshot::channel();
    let queued = QueuedRequest { request: Arc::clone(request), reply };
    let (ticket, is_full) = lease.upstream.queue.submit(queued, deadline).map_err(Unanswered::Failed)?;
    let _submission = Submission { upstream: &lease.upstream, ticket };
    if is_full {
        dispatch(state, &lease.upstream);
    } else {
        reads::on_queued();
    }
    let lost = || GatewayError::UpstreamFailed {
        upstream: lease.upstream.name.clone(),
        reason: "its batch was lost".to_owned(),
    };
    let answered = match deadline {
        None => answer.await,
        Some(deadline) => match tokio::time::timeout_at(deadline.into(), answer).await {
            Ok(answered) => answered,
            Err(_) => return Err(Unanswered::Failed(GatewayError::DeadlineExceeded)),
        },
    };
    answered.unwrap_or_else(|_| Err(Unanswered::Failed(lost())))
}

/// Starts what can be started.
pub(crate) fn dispatch(state: &Arc<GatewayState>, upstream: &Arc<Upstream>) {
    loop {
        match upstream.queue.next_action() {
            QueueAction::Run(batch) => {
                tokio::spawn(run(Arc::clone(state), Arc::clone(upstream), batch));
            }
            QueueAction::WaitUntil(time) => {
                let (state, upstream) = (Arc::clone(state), Arc::clone(upstream));
                tokio::spawn(async move {
                    tokio::time::sleep_until(time.into()).await;
                    dispatch(&state, &upstream);
                });
                return;
            }
            QueueAction::Idle => return,
        }
    }
}

/// What became of a call.
enum CallOutcome {
    Answered(Vec<BatchAnswer>),
    /// The upstream does not accept all of the requests; this is its answer.
    Rejected(BatchAnswer),
    Unanswered(Unanswered),
    /// All clients have disconnected.
    Unwanted,
}

async fn run(state: Arc<GatewayState>, upstream: Arc<Upstream>, batch: QueuedBatch) {
    let mut parts = vec![batch.requests];
    let mut is_ok = true;
    while let Some(mut part) = parts.pop() {
        part.retain(|request| !request.reply.is_closed());
        if part.is_empty() {
            continue;
        }
        let outcome = call(&state, &upstream, &mut part).await;
        is_ok &= matches!(outcome, CallOutcome::Answered(_));
        match outcome {
            CallOutcome::Answered(answers) => {
                for (request, answer) in part.into_iter().zip(answers) {
                    let _ = request.reply.send(Ok(answer));
                }
            }
            // Halves are tried until the request at fault is alone.
            CallOutcome::Rejected(_) if part.len() > 1 => {
                state.metrics.split();
                let second = part.split_off(part.len() / 2);
                parts.extend([second, part]);
            }
            CallOutcome::Rejected(answer) => reply_all(part, &Ok(answer)),
            CallOutcome::Unanswered(unanswered) => reply_all(part, &Err(unanswered)),
            CallOutcome::Unwanted => {}
        }
    }
    upstream.queue.finished(batch.id, is_ok);
    dispatch(&state, &upstream);
    // Clients that have their answers may send their next requests at once.
    reads::on_queued();
}

fn reply_all(requests: Vec<QueuedRequest>, result: &BatchResult) {
    for request in requests {
        let _ = request.reply.send(result.clone());
    }
}

/// Sends requests as one, unless all of their clients disconnect first.
async fn call(state: &GatewayState, upstream: &Arc<Upstream>, requests: &mut [QueuedRequest]) -> CallOutcome {
    let rows: usize = requests.iter().map(|request| request.request.rows.count()).sum();
    let Some(request) = joined(state, upstream, requests) else { return CallOutcome::Unwanted };
    let (timeout, start) = (state.settings.timeout, Instant::now());
    let exchange = exchange(state, Lease::new(upstream), request);
    let answered = tokio::select! {
        answered = tokio::time::timeout(timeout, exchange) => answered,
        () = all_closed(requests) => return CallOutcome::Unwanted,
    };
    let name = || upstream.name.clone();
    let (head, body) = match answered {
        Ok(Ok(answer)) => answer,
        Ok(Err(unanswered)) => {
            match &unanswered {
                Unanswered::Unsent => {
                    state.upstreams.set_reachable(upstream, Err("cannot connect".to_owned()));
                }
                Unanswered::Lost(_) => upstream.on_failure(),
                Unanswered::Failed(_) => {}
            }
            return CallOutcome::Unanswered(unanswered);
        }
        Err(_) => {
            upstream.on_failure();
            let error = GatewayError::UpstreamTimeout { upstream: name(), timeout };
            return CallOutcome::Unanswered(Unanswered::Failed(error));
        }
    };
    upstream.metrics.answered(rows, start.elapsed());
    // One bad request may fail several batches before it is alone.
    let is_judged = requests.len() == 1 || !is_about_requests(head.status);
    if head.status.is_server_error() && is_judged {
        upstream.on_failure();
    } else if !head.status.is_server_error() {
        upstream.on_success();
    }
    let answer = |pieces| BatchAnswer { status: head.status, headers: head.headers.clone(), pieces };
    if !head.status.is_success() {
        return if is_about_requests(head.status) {
            CallOutcome::Rejected(answer(vec![body]))
        } else {
            CallOutcome::Answered(requests.iter().map(|_| answer(vec![body.clone()])).collect())
        };
    }
    let rows: Vec<&RequestRows> = requests.iter().map(|request| &request.request.rows).collect();
    match state.settings.format.split(&body, &rows) {
        Ok(answers) => CallOutcome::Answered(answers.into_iter().map(answer).collect()),
        Err(error) => {
            let error = GatewayError::Unsplittable { upstream: name(), error };
            CallOutcome::Unanswered(Unanswered::Failed(error))
        }
    }
}

/// Whether an error is about what was sent, and not about the upstream's state.
fn is_about_requests(status: StatusCode) -> bool {
    let is_state = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    (status.is_client_error() || status.is_server_error()) && !is_state
}

/// The request to the upstream; `None` if there is nothing to send.
fn joined(
    state: &GatewayState,
    upstream: &Upstream,
    requests: &[QueuedRequest],
) -> Option<Request<OutgoingBody>> {
    let rows: Vec<&RequestRows> = requests.iter().map(|request| &request.request.rows).collect();
    let first = &requests.first()?.request;
    let mut request = Request::new(OutgoingBody::Whole(Some(join(&rows))));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = upstream.url.target(&first.target);
    *request.headers_mut() = match requests {
        [_] => first.headers.clone(),
        _ => state.settings.ignored_headers.common(&first.headers),
    };
    request.headers_mut().insert(header::HOST, upstream.url.authority.clone());
    Some(request)
}

/// Waits until nobody waits for an answer.
async fn all_closed(requests: &mut [QueuedRequest]) {
    for request in requests {
        request.reply.closed().await;
    }
}

/// Sends a request and reads the whole answer.
async fn exchange(
    state: &GatewayState,
    lease: Lease,
    request: Request<OutgoingBody>,
) -> Result<(Parts, Bytes), Unanswered> {
    let upstream = Arc::clone(&lease.upstream);
    let lost =
        |reason| Unanswered::Lost(GatewayError::UpstreamFailed { upstream: upstream.name.clone(), reason });
    let (response, exchange) = lease.send(request).await.map_err(|error| match error {
        SendError::Unsent(_) => Unanswered::Unsent,
        SendError::Lost(reason) => lost(reason),
    })?;
    let (mut head, mut body) = response.into_parts();
    let mut reservation = Reservation::new(&state.resources.budget);
    let (mut first, mut gathered) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = next_frame(&mut body).await {
        let Ok(data) = frame.map_err(|error| lost(error_chain(&error)))?.into_data() else { continue };
        let size = first.len() + gathered.len() + data.len();
        reservation.cover(size).map_err(|rejection| {
            Unanswered::Failed(match rejection {
                HttpRejection::MemoryExceeded { limit, .. } => GatewayError::UpstreamFailed {
                    upstream: upstream.name.clone(),
                    reason: format!("its answer does not fit into the memory budget of {limit} bytes"),
                },
                rejection => rejection.into(),
            })
        })?;
        // The usual answer arrives in one chunk and is used without a copy.
        if first.is_empty() && gathered.is_empty() {
            first = data;
            continue;
        }
        gathered.extend_from_slice(&std::mem::take(&mut first));
        gathered.extend_from_slice(&data);
    }
    exchange.complete();
    headers::share_answer(&mut head.headers);
    let body = if gathered.is_empty() { first } else { gathered.freeze() };
    Ok((head, reservation.attach(body)))
}

async fn next_frame(body: &mut Incoming) -> Option<Result<hyper::body::Frame<Bytes>, hyper::Error>> {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}
