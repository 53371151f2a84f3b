//! Runs batches: joins requests, sends them, splits the answer, and finds the request at fault where one is rejected.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use cudock_batcher::{LaneAction, Ticket};
use hyper::header;
use hyper::http::response::Parts;
use hyper::{Method, Request, StatusCode};
use tokio::sync::oneshot;

use crate::batching::answer::SplitError;
use crate::batching::batchable::{BatchAnswer, BatchableRequest};
use crate::batching::exchange::{ExchangeError, exchange, is_split};
use crate::batching::forms::SplitFailure;
use crate::batching::queue::{BatchResult, QueuedBatch, QueuedRequest, Unanswered};
use crate::batching::rows::{RequestRows, join};
use crate::error::GatewayError;
use crate::requests::body::OutgoingBody;
use crate::requests::reads;
use crate::state::GatewayState;
use crate::upstreams::upstream::{Lease, Upstream};

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

/// Queues a request and waits for its answer. If it has not been sent at `until`, it is withdrawn.
pub(crate) async fn submit(
    state: &Arc<GatewayState>,
    lease: &Lease,
    request: &Arc<BatchableRequest>,
    deadline: Option<Instant>,
    until: Instant,
) -> BatchResult {
    let (reply, mut answer) = oneshot::channel();
    let queued = QueuedRequest { request: Arc::clone(request), reply };
    let start = Instant::now();
    let (ticket, is_full) = lease.upstream.queue.submit(queued, deadline)?;
    let _submission = Submission { upstream: &lease.upstream, ticket };
    if is_full {
        dispatch(state, &lease.upstream);
    } else {
        reads::on_queued();
    }
    let answered = match tokio::time::timeout_at(until.into(), &mut answer).await {
        Ok(answered) => answered,
        Err(_) if lease.upstream.queue.withdraw(ticket) => {
            let is_late = deadline.is_some_and(|deadline| deadline <= until);
            return Err(Unanswered::Failed(if is_late {
                GatewayError::DeadlineExceeded
            } else {
                GatewayError::Unavailable { waited: start.elapsed() }
            }));
        }
        // It has been sent: only the client's deadline applies, which is watched elsewhere.
        Err(_) => answer.await,
    };
    answered
        .unwrap_or_else(|_| Err(Unanswered::Failed(lease.upstream.failure("its batch was lost".to_owned()))))
}

/// Starts what can be started.
pub(crate) fn dispatch(state: &Arc<GatewayState>, upstream: &Arc<Upstream>) {
    loop {
        match upstream.queue.next_action() {
            LaneAction::Run(batch) => {
                tokio::spawn(run(Arc::clone(state), Arc::clone(upstream), batch));
            }
            LaneAction::WaitUntil(time) => {
                let (state, upstream) = (Arc::clone(state), Arc::clone(upstream));
                tokio::spawn(async move {
                    tokio::time::sleep_until(time.into()).await;
                    dispatch(&state, &upstream);
                });
                return;
            }
            LaneAction::Idle => return,
        }
    }
}

/// The outcome of a call.
enum CallOutcome {
    Answered(Vec<BatchAnswer>),
    /// The upstream does not accept all of the requests; this is its answer.
    Rejected(BatchAnswer),
    /// The upstream's answer cannot be split.
    Unsplit(SplitError),
    Unanswered(Unanswered),
    /// All clients have disconnected.
    Unwanted,
}

async fn run(state: Arc<GatewayState>, upstream: Arc<Upstream>, batch: QueuedBatch) {
    let mut parts = vec![batch.requests];
    let mut is_ok = true;
    while let Some(mut part) = parts.pop() {
        part.retain(|request| !request.reply.is_closed());
        let Some(form) = part.first().map(|first| first.request.form) else { continue };
        if upstream.forms.is_alone(form) {
            reply_all(part, &Err(Unanswered::Alone));
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
            CallOutcome::Rejected(_) if part.len() > 1 => parts.extend(halves(&state, part)),
            CallOutcome::Rejected(answer) => reply_all(part, &Ok(answer)),
            CallOutcome::Unsplit(error) => match upstream.forms.on_unsplit(form, &error, part.len()) {
                SplitFailure::Search => parts.extend(halves(&state, part)),
                SplitFailure::Alone { is_news } => {
                    if is_news {
                        report_unsplit(&state, &upstream, &error);
                    }
                    reply_all(part, &Err(Unanswered::Alone));
                }
            },
            CallOutcome::Unanswered(unanswered) => reply_all(part, &Err(unanswered)),
            CallOutcome::Unwanted => {}
        }
    }
    upstream.queue.finished(batch.id, is_ok);
    dispatch(&state, &upstream);
    // Clients that have their answers may send their next requests at once.
    reads::on_queued();
}

/// The requests of a batch in two parts, the first of which is last.
fn halves(state: &GatewayState, mut requests: Vec<QueuedRequest>) -> [Vec<QueuedRequest>; 2] {
    state.metrics.split();
    let second = requests.split_off(requests.len() / 2);
    [second, requests]
}

fn report_unsplit(state: &GatewayState, upstream: &Upstream, error: &SplitError) {
    let (reason, hint) = (error.to_string(), error.hint());
    let mut fields = vec![("upstream", upstream.name.as_str()), ("answer", &reason)];
    fields.extend(hint.as_deref().map(|hint| ("hint", hint)));
    state.settings.server.log.event("requests_sent_one_by_one", &fields);
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
        Ok(Err(ExchangeError::Unsplit(error))) => {
            upstream.on_success();
            return CallOutcome::Unsplit(error);
        }
        Ok(Err(ExchangeError::Unanswered(unanswered))) => {
            match &unanswered {
                Unanswered::Unsent => {
                    state.upstreams.set_reachable(upstream, Err("cannot connect".to_owned()));
                }
                Unanswered::Lost(_) => upstream.on_failure(),
                Unanswered::Failed(_) | Unanswered::Alone => {}
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
    answered_call(state, upstream, requests, &head, body)
}

/// The outcome of a call with a response, for the requests of its batch.
fn answered_call(
    state: &GatewayState,
    upstream: &Upstream,
    requests: &[QueuedRequest],
    head: &Parts,
    body: Bytes,
) -> CallOutcome {
    // Several clients get only what is true of each of them.
    let headers = match requests {
        [_] if !is_split(head.status) => head.headers.clone(),
        _ => state.settings.shared_headers.of(&head.headers),
    };
    let answer = |pieces| BatchAnswer { status: head.status, headers: headers.clone(), pieces };
    if is_about_requests(head.status) {
        return CallOutcome::Rejected(answer(vec![body]));
    }
    if !is_split(head.status) {
        return CallOutcome::Answered(requests.iter().map(|_| answer(vec![body.clone()])).collect());
    }
    let rows: Vec<&RequestRows> = requests.iter().map(|request| &request.request.rows).collect();
    match state.settings.format.split(&body, &rows) {
        Ok(answers) => {
            if let Some(first) = requests.first() {
                upstream.forms.on_split(first.request.form);
            }
            CallOutcome::Answered(answers.into_iter().map(answer).collect())
        }
        Err(error) => CallOutcome::Unsplit(error),
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
    let (first, others) = requests.split_first()?;
    let (first, others) = (&first.request, others.iter().map(|other| &other.request.headers));
    let mut request = Request::new(OutgoingBody::whole(join(&rows)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = first.target.target(&upstream.url);
    *request.headers_mut() = state.settings.ignored_headers.common(&first.headers, &others);
    request.headers_mut().insert(header::HOST, upstream.url.authority.clone());
    Some(request)
}

/// Waits until all clients of a batch have disconnected.
async fn all_closed(requests: &mut [QueuedRequest]) {
    for request in requests {
        request.reply.closed().await;
    }
}
