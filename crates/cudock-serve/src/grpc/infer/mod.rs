//! Inference: from a message to tensors, and from an answer to a message.

mod contents;
mod parameters;
mod request;
mod response;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use cudock_tensor::{Answer, WantedOutput};

pub(crate) use self::request::InferRequest;
pub(crate) use self::response::{InferResponse, error_in_stream};
use super::deadline::Deadline;
use super::status::Status;
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

/// Runs a request that came at `received`. Dropping the future takes it back.
pub(crate) async fn run(
    service: &Service,
    request: InferRequest,
    deadline: Deadline,
    received: Instant,
) -> Result<Answered, Status> {
    let model = service.model(&request.model, Some(&request.version))?;
    let mut inference = request.into_inference(model.signature(), service.limits(), deadline, received)?;
    let id = inference.id.take().unwrap_or_default();
    let wanted = std::mem::take(&mut inference.outputs);
    let answer = model.infer_since(inference, received).await?;
    Ok(Answered { model, id, wanted, answer })
}
