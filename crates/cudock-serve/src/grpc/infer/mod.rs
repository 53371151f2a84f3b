//! Inference: from a message to tensors, and from an answer to a message.

mod contents;
mod parameters;
mod request;
mod response;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use cudock_tensor::{Answer, Inference, WantedOutput};

use self::request::InferRequest;
pub(crate) use self::response::{InferResponse, error_in_stream};
use super::deadline::Deadline;
use super::status::Status;
use crate::aside::INLINE_COPY;
use crate::memory::{COPIES, Reservation};
use crate::model::Model;
use crate::service::Service;

/// A request that was answered.
pub(crate) struct Answered {
    model: Arc<Model>,
    id: String,
    wanted: Vec<WantedOutput>,
    answer: Answer,
}

impl Answered {
    /// What is to be written of it.
    pub(crate) fn response(&self) -> InferResponse<'_> {
        InferResponse {
            model: self.model.name(),
            version: self.model.version(),
            id: &self.id,
            signature: self.model.signature(),
            wanted: &self.wanted,
            answer: &self.answer,
        }
    }
}

/// What a request says of itself, kept for the error that it may come to.
#[derive(Default)]
pub(crate) struct About {
    pub(crate) model: String,
    pub(crate) version: String,
    pub(crate) id: String,
}

/// A request that is ready to run.
struct Prepared {
    model: Arc<Model>,
    inference: Inference,
    held: Reservation,
}

/// Runs the request in a message that came at `received`, and gives the answer with what it holds of the memory budget.
/// Dropping the future takes it back.
pub(crate) async fn run(
    service: &Arc<Service>,
    message: Bytes,
    held: Reservation,
    deadline: Deadline,
    received: Instant,
    about: &mut About,
) -> Result<(Answered, Reservation), Status> {
    let prepared = if message.len() <= INLINE_COPY {
        prepare(service, message, held, deadline, received, about)
    } else {
        // Much to go through: other connections are served meanwhile.
        let (shared, mut told) = (Arc::clone(service), About::default());
        let preparing = move || {
            let prepared = prepare(&shared, message, held, deadline, received, &mut told);
            Ok((prepared, told))
        };
        let (prepared, told) = service.aside.run(preparing).await?;
        *about = told;
        prepared
    };
    let Prepared { model, mut inference, held } = prepared?;
    let id = inference.id.take().unwrap_or_default();
    let wanted = std::mem::take(&mut inference.outputs);
    let answer = model.infer_since(inference, received).await?;
    Ok((Answered { model, id, wanted, answer }, held))
}

fn prepare(
    service: &Service,
    message: Bytes,
    mut held: Reservation,
    deadline: Deadline,
    received: Instant,
    about: &mut About,
) -> Result<Prepared, Status> {
    let request = InferRequest::read(&message, service.limits().rank)?;
    let length = message.len();
    drop(message);
    *about = About { model: request.model.clone(), version: request.version.clone(), id: request.id.clone() };
    let model = service.model(&request.model, Some(&request.version))?;
    // Raw tensors lie in the message; others are read into memory of their own.
    held.cover(length.saturating_add(request.typed_size()).saturating_mul(COPIES))?;
    let inference = request.into_inference(model.signature(), service.limits(), deadline, received)?;
    Ok(Prepared { model, inference, held })
}
