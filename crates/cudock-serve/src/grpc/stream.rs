//! `ModelStreamInfer`: requests as they come, answers in their order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::Body;

use super::call::Call;
use super::frames::RawMessage;
use super::holding::Holding;
use super::infer::{self, Answered, InferRequest, error_in_stream};
use super::ordered::Ordered;
use super::outbox::Outbox;
use super::reading::{Messages, unpack};
use super::status::Status;
use super::writing::pack;
use crate::ServeError;
use crate::service::Service;

/// Most requests of one stream that are worked on at once. Enough to fill batches; the rest waits with the client.
const MOST_AT_ONCE: usize = 64;
/// How often an idle stream looks whether the server wants to end.
const LOOK: Duration = Duration::from_millis(100);
/// When the server wants to end, a stream ends with the first pause of this length, or after `LAST_REQUESTS`.
const PAUSE: Duration = Duration::from_millis(10);
const LAST_REQUESTS: Duration = Duration::from_millis(500);

/// Serves a stream until the client ends it, a message cannot be read, or the server ends.
pub(crate) async fn serve<B>(
    service: Arc<Service>,
    call: Call,
    mut messages: Messages<B>,
    outbox: Outbox,
) -> Status
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let mut holding = Holding::new(|bytes| service.hold(bytes));
    let mut running = Ordered::new();
    let mut draining: Option<Instant> = None;
    let mut end: Option<Status> = None;
    loop {
        if service.is_draining() && draining.get_or_insert_with(Instant::now).elapsed() > LAST_REQUESTS {
            end.get_or_insert_with(|| ServeError::Draining.into());
        }
        match end {
            Some(end) if running.len() == 0 => return end,
            _ => {}
        }
        let reads = end.is_none() && running.len() < MOST_AT_ONCE;
        tokio::select! {
            biased;
            message = messages.next(&mut holding), if reads => {
                holding.release();
                match message {
                    Ok(Some(message)) => running.push(answer(&service, call, message)),
                    Ok(None) => end = Some(Status::OK),
                    Err(status) => end = Some(status),
                }
            }
            outcome = running.next() => match outcome {
                Ok(pieces) => outbox.put(pieces),
                Err(status) => return status,
            },
            () = tokio::time::sleep(if draining.is_some() { PAUSE } else { LOOK }), if end.is_none() => {
                if draining.is_some() && reads && messages.is_between_messages() {
                    end = Some(ServeError::Draining.into());
                }
            }
        }
    }
}

/// The answer to one request of a stream. An error is an answer, too, unless the client wants it to end the stream.
async fn answer(service: &Service, call: Call, message: RawMessage) -> Result<Vec<Bytes>, Status> {
    let mut about = About::default();
    let parts = match run(service, call, message, &mut about)
        .await
        .and_then(|answered| answered.response().stream_message())
    {
        Ok(parts) => parts,
        Err(status) if call.errors_end_stream => return Err(status),
        Err(status) => vec![error_in_stream(&about.model, &about.version, &about.id, &status.message)],
    };
    pack(parts, call.answer_encoding).await
}

/// What a request says of itself, kept for the error that it may come to.
#[derive(Default)]
struct About {
    model: String,
    version: String,
    id: String,
}

async fn run(
    service: &Service,
    call: Call,
    message: RawMessage,
    about: &mut About,
) -> Result<Answered, Status> {
    let received = Instant::now();
    let message = unpack(message, call.encoding, service.limits().body).await?;
    let _held = service.hold(message.len())?;
    let request = InferRequest::read(&message, service.limits().rank)?;
    drop(message);
    *about = About { model: request.model.clone(), version: request.version.clone(), id: request.id.clone() };
    infer::run(service, request, call.deadline, received).await
}
