//! Sends a batch and reads its answer, if it is one that could be split.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cudock_base::text::error_chain;
use cudock_server::{ContentEncoding, HttpRejection, InflateError, Reservation, WorkerLost};
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Request, StatusCode};

use crate::batching::answer::SplitError;
use crate::batching::queue::Unanswered;
use crate::requests::accept;
use crate::requests::body::OutgoingBody;
use crate::requests::headers;
use crate::state::GatewayState;
use crate::upstreams::upstream::{Lease, SendError, Upstream};

/// Why a response cannot be split.
pub(crate) enum ExchangeError {
    Unanswered(Unanswered),
    /// The response is not JSON; the rest of it has not been read.
    Unsplit(SplitError),
}

/// Sends a request and reads the whole answer. One that is not JSON is not waited for: it may be a stream.
pub(crate) async fn exchange(
    state: &GatewayState,
    lease: Lease,
    request: Request<OutgoingBody>,
) -> Result<(Parts, Bytes), ExchangeError> {
    let upstream = Arc::clone(&lease.upstream);
    let lost = |reason| ExchangeError::Unanswered(Unanswered::Lost(upstream.failure(reason)));
    let (response, exchange) = lease.send(request).await.map_err(|error| match error {
        SendError::Unsent(_) => ExchangeError::Unanswered(Unanswered::Unsent),
        SendError::Lost(reason) => lost(reason),
    })?;
    let (mut head, mut body) = response.into_parts();
    let encoding = check_head(&head).map_err(ExchangeError::Unsplit)?;
    let mut reservation = Reservation::new(&state.resources.budget);
    let (mut first, mut gathered) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = next_frame(&mut body).await {
        exchange.on_heard();
        let Ok(data) = frame.map_err(|error| lost(error_chain(&error)))?.into_data() else { continue };
        let size = first.len() + gathered.len() + data.len();
        reservation.cover(size).map_err(|rejection| too_large(&upstream, rejection))?;
        // The usual answer arrives in one chunk and is used without a copy.
        if first.is_empty() && gathered.is_empty() {
            if is_split(head.status) && encoding.is_none() && !begins_json(&data) {
                return Err(ExchangeError::Unsplit(SplitError::NotJson));
            }
            first = data;
            continue;
        }
        gathered.extend_from_slice(&std::mem::take(&mut first));
        gathered.extend_from_slice(&data);
    }
    exchange.complete();
    headers::remove_connection_fields(&mut head.headers);
    head.headers.remove(header::CONTENT_LENGTH);
    let body = if gathered.is_empty() { first } else { gathered.freeze() };
    let Some(encoding) = encoding else { return Ok((head, reservation.attach(body))) };
    head.headers.remove(header::CONTENT_ENCODING);
    let body = decoded(state, &upstream, encoding, body, reservation).await?;
    Ok((head, body))
}

/// Whether an answer with this status is split. Others are about the batch, and not about its rows.
pub(crate) fn is_split(status: StatusCode) -> bool {
    matches!(status, StatusCode::OK | StatusCode::CREATED)
}

/// Whether the answer can be one to split, or an error that clients get as it is. Returns how it is encoded if it is to be
/// decoded.
fn check_head(head: &Parts) -> Result<Option<ContentEncoding>, SplitError> {
    if head.status.is_client_error() || head.status.is_server_error() {
        return Ok(None);
    }
    if !is_split(head.status) {
        return Err(SplitError::Status(head.status.as_u16()));
    }
    let kind = text(&head.headers, header::CONTENT_TYPE);
    let essence = kind.split(';').next().unwrap_or_default().trim();
    // Simple servers send JSON as what their framework sends by default.
    let is_usual = ["", "text/html", "text/plain"].iter().any(|usual| essence.eq_ignore_ascii_case(usual));
    if !is_usual && !accept::is_json(essence) {
        return Err(SplitError::ContentType(essence.to_owned()));
    }
    let encoding = text(&head.headers, header::CONTENT_ENCODING);
    if encoding.is_empty() || encoding.eq_ignore_ascii_case("identity") {
        return Ok(None);
    }
    let known = ContentEncoding::from_name(&encoding.to_ascii_lowercase());
    known.map(Some).ok_or_else(|| SplitError::ContentEncoding(encoding.to_owned()))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).map_or("", |value| HeaderValue::to_str(value).unwrap_or("?").trim())
}

fn begins_json(data: &[u8]) -> bool {
    matches!(data.trim_ascii_start().first(), None | Some(b'{' | b'['))
}

/// Decodes an answer that its server has encoded without being asked.
async fn decoded(
    state: &GatewayState,
    upstream: &Arc<Upstream>,
    encoding: ContentEncoding,
    body: Bytes,
    mut reservation: Reservation,
) -> Result<Bytes, ExchangeError> {
    let limit = state.settings.server.memory;
    let decoding = state.resources.workers.run(move || {
        let decoded = encoding.inflate(&body, limit, |bytes| reservation.cover(bytes))?;
        reservation.shrink(decoded.len());
        Ok(reservation.attach(decoded.into()))
    });
    let lost = |error: WorkerLost| ExchangeError::Unanswered(Unanswered::Failed(error.into()));
    decoding.await.map_err(lost)?.map_err(|error| match error {
        InflateError::NoMemory(rejection) => too_large(upstream, rejection),
        InflateError::Corrupt(_) | InflateError::TooLong => ExchangeError::Unsplit(SplitError::NotJson),
    })
}

fn too_large(upstream: &Upstream, rejection: HttpRejection) -> ExchangeError {
    ExchangeError::Unanswered(Unanswered::Failed(match rejection {
        HttpRejection::MemoryExceeded { limit, .. } => {
            upstream.failure(format!("its answer does not fit into the memory budget of {limit} bytes"))
        }
        rejection => rejection.into(),
    }))
}

async fn next_frame(body: &mut Incoming) -> Option<Result<hyper::body::Frame<Bytes>, hyper::Error>> {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}
