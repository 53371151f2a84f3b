//! `ModelStreamInfer`: a stream of requests, with responses in the same order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cudock_server::Reservation;
use futures_util::stream::{FuturesOrdered, StreamExt};
use hyper::body::Incoming;

use super::call::Call;
use super::frames::RawMessage;
use super::infer::{self, RequestInfo, error_in_stream};
use super::messages::encode::{encode_message, hold_until_sent};
use super::messages::stream::{MessageStream, decode_message};
use super::status::GrpcStatus;
use super::stream_body::MessageSink;
use crate::ServeError;
use crate::service::ModelService;

/// Maximum number of concurrent requests of one stream: enough to fill batches; the rest waits at the client.
const MAX_IN_FLIGHT: usize = 64;
/// Interval at which an idle stream checks whether the server is shutting down.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// During shutdown, a stream ends with the first pause of this length, or after `DRAIN_GRACE`.
const PAUSE: Duration = Duration::from_millis(10);
const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// Serves a stream until the client ends it, a message is invalid, or the server shuts down.
pub(crate) async fn serve(
    service: Arc<ModelService>,
    call: Call,
    mut messages: MessageStream<Incoming>,
    sink: MessageSink,
) -> GrpcStatus {
    let mut held = Reservation::new(&service.resources.budget);
    let mut running = FuturesOrdered::new();
    let mut draining: Option<Instant> = None;
    let mut end: Option<GrpcStatus> = None;
    loop {
        if service.is_draining() && draining.get_or_insert_with(Instant::now).elapsed() > DRAIN_GRACE {
            end.get_or_insert_with(|| ServeError::Draining.into());
        }
        match end {
            Some(end) if running.is_empty() => return end,
            _ => {}
        }
        let reads = end.is_none() && running.len() < MAX_IN_FLIGHT;
        tokio::select! {
            biased;
            message = messages.next(&mut held, || service.is_draining()), if reads => {
                match message {
                    Ok(Some(message)) => {
                        let held = std::mem::replace(&mut held, Reservation::new(&service.resources.budget));
                        running.push_back(response(&service, call, message, held));
                    }
                    Ok(None) => end = Some(GrpcStatus::OK),
                    Err(status) => end = Some(status),
                }
            }
            Some(outcome) = running.next() => match outcome {
                Ok(pieces) => sink.put(pieces),
                Err(status) => return status,
            },
            () = tokio::time::sleep(if draining.is_some() { PAUSE } else { DRAIN_CHECK_INTERVAL }), if end.is_none() => {
                if draining.is_some() && reads && messages.is_between_messages() {
                    end = Some(ServeError::Draining.into());
                }
            }
        }
    }
}

/// The response to one request of a stream. An error is a response, too, unless the client wants it to end the stream.
async fn response(
    service: &Arc<ModelService>,
    call: Call,
    message: RawMessage,
    held: Reservation,
) -> Result<Vec<Bytes>, GrpcStatus> {
    let mut info = RequestInfo::default();
    let (parts, held) = match run(service, call, message, held, &mut info).await {
        Ok((parts, held)) => (parts, Some(held)),
        Err(status) if call.errors_end_stream => return Err(status),
        Err(status) => (vec![error_in_stream(&info.model, &info.version, &info.id, &status.message)], None),
    };
    let pieces = encode_message(&service.resources.workers, parts, call.response_encoding).await?;
    match held {
        Some(held) => hold_until_sent(pieces, held, call.response_encoding),
        None => Ok(pieces),
    }
}

async fn run(
    service: &Arc<ModelService>,
    call: Call,
    message: RawMessage,
    held: Reservation,
    info: &mut RequestInfo,
) -> Result<(Vec<Bytes>, Reservation), GrpcStatus> {
    let received = Instant::now();
    let limit = service.settings.limits.body;
    let (message, held) =
        decode_message(&service.resources.workers, message, call.encoding, limit, held).await?;
    let (completed, held) = infer::run(service, message, held, call.deadline, received, info, None).await?;
    Ok((completed.response().stream_message()?, held))
}
