//! `ModelStreamInfer`: requests as they come, answers in their order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::Body;

use super::call::Call;
use super::frames::RawMessage;
use super::infer::{self, About, error_in_stream};
use super::ordered::Ordered;
use super::outbox::Outbox;
use super::reading::{Messages, unpack};
use super::status::Status;
use super::writing::{counted, pack};
use crate::ServeError;
use crate::memory::Reservation;
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
    let mut held = Reservation::new(&service.budget);
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
            message = messages.next(&mut held, || service.is_draining()), if reads => {
                match message {
                    Ok(Some(message)) => {
                        let held = std::mem::replace(&mut held, Reservation::new(&service.budget));
                        running.push(answer(&service, call, message, held));
                    }
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
async fn answer(
    service: &Arc<Service>,
    call: Call,
    message: RawMessage,
    held: Reservation,
) -> Result<Vec<Bytes>, Status> {
    let mut about = About::default();
    let (parts, held) = match run(service, call, message, held, &mut about).await {
        Ok((parts, held)) => (parts, Some(held)),
        Err(status) if call.errors_end_stream => return Err(status),
        Err(status) => {
            (vec![error_in_stream(&about.model, &about.version, &about.id, &status.message)], None)
        }
    };
    let pieces = pack(&service.aside, parts, call.answer_encoding).await?;
    match held {
        Some(held) => counted(pieces, held),
        None => Ok(pieces),
    }
}

async fn run(
    service: &Arc<Service>,
    call: Call,
    message: RawMessage,
    held: Reservation,
    about: &mut About,
) -> Result<(Vec<Bytes>, Reservation), Status> {
    let received = Instant::now();
    let limit = service.limits().body;
    let (message, held) = unpack(&service.aside, message, call.encoding, limit, held).await?;
    let (answered, held) = infer::run(service, message, held, call.deadline, received, about).await?;
    Ok((answered.response().stream_message()?, held))
}
