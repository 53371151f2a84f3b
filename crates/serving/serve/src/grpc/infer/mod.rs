//! Inference: from a message to tensors, and from a result to a message.

mod contents;
mod parameters;
mod request;
mod response;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use cudock_server::{MAX_INLINE_COPY, Reservation};
use cudock_tensor::{InferenceRequest, InferenceResponse, RequestedOutput};
use cudock_trace::RequestTrace;

use self::request::InferRequest;
pub(crate) use self::response::{InferResponse, error_in_stream};
use super::deadline::Deadline;
use super::status::GrpcStatus;
use crate::COPIES;
use crate::model::Model;
use crate::service::{ModelService, ServedModel};

pub(crate) struct CompletedInference {
    model: Arc<Model>,
    id: String,
    wanted: Vec<RequestedOutput>,
    response: InferenceResponse,
}

impl CompletedInference {
    pub(crate) fn response(&self) -> InferResponse<'_> {
        InferResponse {
            model: self.model.name(),
            version: self.model.version(),
            id: &self.id,
            signature: &self.model.signature,
            wanted: &self.wanted,
            response: &self.response,
        }
    }
}

/// Identifies a request in the error it may cause.
#[derive(Default)]
pub(crate) struct RequestInfo {
    pub(crate) model: String,
    pub(crate) version: String,
    pub(crate) id: String,
}

enum Prepared {
    Inference {
        model: Arc<Model>,
        inference: InferenceRequest,
    },
    /// The model is not known before it has been loaded once.
    NotLoaded(ServedModel),
}

/// Runs the request in a message that arrived at `received`, and returns the result with its reservation. Dropping the
/// future withdraws the request.
pub(crate) async fn run(
    service: &Arc<ModelService>,
    message: Bytes,
    mut held: Reservation,
    deadline: Deadline,
    received: Instant,
    info: &mut RequestInfo,
    trace: Option<&RequestTrace>,
) -> Result<(CompletedInference, Reservation), GrpcStatus> {
    let mut first_request = None;
    let (model, mut inference) = loop {
        let prepared = if message.len() <= MAX_INLINE_COPY {
            prepare(service, &message, &mut held, deadline, received, info)
        } else {
            // A large message: other connections are served meanwhile.
            let (shared, message) = (Arc::clone(service), message.clone());
            let preparing = move || {
                let mut parsed = RequestInfo::default();
                let prepared = prepare(&shared, &message, &mut held, deadline, received, &mut parsed);
                (prepared, parsed, held)
            };
            let (prepared, parsed, returned) = service.resources.workers.run(preparing).await?;
            (*info, held) = (parsed, returned);
            prepared
        };
        match prepared? {
            Prepared::Inference { model, inference } => break (model, inference),
            Prepared::NotLoaded(served) => {
                first_request = service.after_first_load(served, deadline.instant()).await?.1;
            }
        }
    };
    drop(message);
    let id = inference.id.take().unwrap_or_default();
    let wanted = std::mem::take(&mut inference.outputs);
    let response = model.infer(inference, received, trace).await?;
    drop(first_request);
    Ok((CompletedInference { model, id, wanted, response }, held))
}

fn prepare(
    service: &ModelService,
    message: &Bytes,
    held: &mut Reservation,
    deadline: Deadline,
    received: Instant,
    info: &mut RequestInfo,
) -> Result<Prepared, GrpcStatus> {
    let request = InferRequest::read(message, service.settings.limits.rank)?;
    *info = RequestInfo {
        model: request.model.clone(),
        version: request.version.clone(),
        id: request.id.clone(),
    };
    let model = match service.find(&request.model, Some(&request.version))? {
        ServedModel::Known(model) => model,
        served @ ServedModel::New(_) => return Ok(Prepared::NotLoaded(served)),
    };
    // Raw tensors are slices of the message; others are parsed into memory of their own.
    held.cover(message.len().saturating_add(request.typed_size()).saturating_mul(COPIES))?;
    let limits = &service.settings.limits;
    let inference = request.into_inference(&model.signature, limits, deadline, received)?;
    Ok(Prepared::Inference { model, inference })
}
