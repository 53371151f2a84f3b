//! Answers a request that may share a batch.

use std::sync::Arc;

use cudock_server::{ContentEncoding, MAX_INLINE_PARSE, SMALL_BODY};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response};

use crate::batching::batch;
use crate::batching::batch_headers;
use crate::batching::batchable::{BatchAnswer, BatchableRequest};
use crate::batching::queue::Unanswered;
use crate::error::GatewayError;
use crate::requests::accept;
use crate::requests::body::OutgoingBody;
use crate::requests::client_request::{ClientRequest, prepare_headers};
use crate::requests::forward::{ForwardedRequest, MAX_LOST, forward};
use crate::requests::path::ConfinedPath;
use crate::requests::response_body::GatewayBody;
use crate::state::GatewayState;

/// Whether a request may share a batch, as far as its head shows.
pub(crate) fn is_batchable(state: &GatewayState, head: &Parts) -> bool {
    let kind = head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let essence = kind.and_then(|kind| kind.split(|byte| *byte == b';').next());
    let is_json =
        essence.is_none_or(|essence| essence.trim_ascii().eq_ignore_ascii_case(b"application/json"));
    // What cannot be decompressed here is for the upstream to read.
    let is_readable = ContentEncoding::of_body(&head.headers).is_ok();
    head.method == Method::POST
        && head.uri.path() == state.settings.path
        && is_json
        && is_readable
        && accept::prefers_json(&head.headers)
        && !batch_headers::describes_body(&head.headers)
}

/// Answers a request in a batch, or forwards it alone if it turns out that it cannot share one.
pub(crate) async fn predict(
    state: &Arc<GatewayState>,
    request: ClientRequest<'_>,
) -> Result<Response<GatewayBody>, GatewayError> {
    state.upstreams.reject_if_full()?;
    let until = request.hold_until(state);
    let queue_time = state.settings.batcher.max_queue_time;
    let send_until = until.checked_add(queue_time).unwrap_or(until);
    let send_until = request.deadline.map_or(send_until, |deadline| deadline.min(send_until));
    let ClientRequest { mut head, path, body, deadline, activity, .. } = request;
    let read = state.resources.read_body(&head.headers, body, activity).await?;
    let (bytes, mut reservation) = (read.bytes, read.held);
    prepare_headers(state, &mut head, activity);
    // The body was decompressed.
    head.headers.remove(header::CONTENT_ENCODING);
    let text = bytes.clone();
    let rows = if text.len() <= MAX_INLINE_PARSE {
        state.settings.format.read_request(text)
    } else {
        let format = state.settings.format.clone();
        state.resources.workers.run(move || format.read_request(text)).await?
    };
    let alone = |path: ConfinedPath, headers, body| ForwardedRequest {
        method: Method::POST,
        path,
        headers,
        body: OutgoingBody::whole(body),
        body_end: None,
        hold_until: Some(until),
    };
    let Some(rows) = rows else {
        let request = alone(path, head.headers, reservation.attach(bytes));
        return forward(state, request, activity).await;
    };
    if bytes.len() > SMALL_BODY {
        // It is copied into the request to the upstream.
        reservation.cover(bytes.len() * 2)?;
    }
    let ignored = &state.settings.ignored_headers;
    let request =
        Arc::new(BatchableRequest::new(ignored, &state.hasher, rows, path, head.headers, reservation));
    let mut lost = 0;
    loop {
        let lease = state.upstreams.wait(until).await?;
        let answered = if lease.upstream.forms.is_alone(request.form) {
            Err(Unanswered::Alone)
        } else {
            batch::submit(state, &lease, &request, deadline, send_until).await
        };
        match answered {
            Ok(answer) => return Ok(respond(answer)),
            Err(Unanswered::Unsent) => {}
            Err(Unanswered::Alone) => {
                drop(lease);
                state.metrics.sent_alone();
                let body = BatchableRequest::body(&request);
                let request = alone(request.target.clone(), request.headers.clone(), body);
                return forward(state, request, activity).await;
            }
            Err(Unanswered::Lost(_)) if state.settings.retry_posts && lost < MAX_LOST => lost += 1,
            Err(Unanswered::Lost(error) | Unanswered::Failed(error)) => return Err(error),
        }
    }
}

fn respond(answer: BatchAnswer) -> Response<GatewayBody> {
    let mut response = Response::new(GatewayBody::pieces(answer.pieces));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}
