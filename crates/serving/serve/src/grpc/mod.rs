//! The Open Inference Protocol over gRPC, with the calls that Triton adds to it.
//!
//! There is no gRPC library behind this. A call is an HTTP/2 request whose body consists of messages with a prefix of
//! five bytes, and whose status is in the trailers; hyper does HTTP/2, and the rest is here. In return, tensors go from
//! the connection's buffer to the engine and back without a copy, the requests of a client that disconnects are
//! withdrawn, and a client that does not read or write blocks no other.

mod body;
mod call;
mod deadline;
pub(crate) mod describe;
mod encoding;
#[cfg(test)]
mod fixtures;
mod frames;
mod health;
mod infer;
mod messages;
mod reflection;
mod services;
mod status;
mod stream;
mod stream_body;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use cudock_server::{ConnectionActivity, HttpRejection, Reservation};
use cudock_trace::RequestTrace;
use hyper::body::Incoming;
use hyper::{Request, Response};
use prost::Message;

pub(crate) use self::body::GrpcBody;
use self::call::Call;
use self::infer::RequestInfo;
use self::messages::encode::{encode_message, hold_until_sent};
use self::messages::stream::{MessageStream, MessageTiming, decode_message};
use self::messages::{
    ModelRequest, ParameterEntry, ProbeResponse, RepositoryIndexRequest, RepositoryModelRequest, decode,
};
use self::services::{HEALTH, INFERENCE, SMALL};
use self::status::GrpcStatus;
use self::stream_body::StreamBody;
use crate::http::ModelEffect;
use crate::service::ModelService;

/// Handles a gRPC call. The HTTP status is always 200; the result is in `grpc-status`.
pub(crate) async fn handle(
    service: Arc<ModelService>,
    request: Request<Incoming>,
    activity: &ConnectionActivity,
) -> Response<GrpcBody> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let settings = &service.settings.server;
    let has_key = settings.keys.is_authorized(&head.headers);
    let admitted = if is_public(path) { Ok(()) } else { settings.admit(&head.headers, activity) };
    let trace = head.extensions.get::<Arc<RequestTrace>>().map(AsRef::as_ref);
    let outcome = match (admitted, Call::read(&head.headers, Instant::now())) {
        (Err(rejection), _) => Err(rejection.into()),
        (Ok(()), Ok(call)) => route(service, path, call, body, has_key, trace).await,
        (Ok(()), Err(status)) => Err(status),
    };
    outcome.unwrap_or_else(|status| body::error_response(&status))
}

/// Service and method of a call.
fn service_and_method(path: &str) -> (&str, &str) {
    path.strip_prefix('/').and_then(|path| path.rsplit_once('/')).unwrap_or_default()
}

/// Whether a call needs no API key: probes.
fn is_public(path: &str) -> bool {
    matches!(service_and_method(path), (HEALTH, _) | (INFERENCE, "ServerLive" | "ServerReady"))
}

/// The effect of a call on the models.
pub(crate) fn effect(path: &str) -> ModelEffect {
    match service_and_method(path) {
        (INFERENCE, "ModelInfer" | "ModelStreamInfer" | "ModelMetadata" | "ModelConfig") => {
            ModelEffect::Needs
        }
        (INFERENCE, "ModelStatistics" | "RepositoryIndex" | "ServerMetadata" | "ModelReady") => {
            ModelEffect::None
        }
        (name, _) if is_public(path) || reflection::SERVICES.contains(&name) => ModelEffect::None,
        _ => ModelEffect::Changes,
    }
}

/// The response to a call that is rejected before it is read.
pub(crate) fn reject(rejection: HttpRejection) -> Response<GrpcBody> {
    body::error_response(&rejection.into())
}

async fn route(
    service: Arc<ModelService>,
    path: &str,
    call: Call,
    body: Incoming,
    has_key: bool,
    trace: Option<&RequestTrace>,
) -> Result<Response<GrpcBody>, GrpcStatus> {
    let patience = service.settings.server.client_timeout;
    let limit = service.settings.limits.body;
    let (name, method) = service_and_method(path);
    if (name, method) == (INFERENCE, "ModelStreamInfer") {
        let messages = MessageStream::new(body, limit, MessageTiming::Optional, patience);
        let written = StreamBody::by(|sink| stream::serve(service, call, messages, sink));
        return Ok(body::stream(call.response_encoding, written));
    }
    if reflection::SERVICES.contains(&name) && method == "ServerReflectionInfo" {
        let messages = MessageStream::new(body, SMALL, MessageTiming::Optional, patience);
        let written = StreamBody::by(|sink| reflection::serve(service, call, messages, sink));
        return Ok(body::stream(call.response_encoding, written));
    }
    let is_infer = (name, method) == (INFERENCE, "ModelInfer");
    let limit = if is_infer { limit } else { limit.min(SMALL) };
    let mut held = Reservation::new(&service.resources.budget);
    let messages = MessageStream::new(body, limit, MessageTiming::Required, patience);
    let message = messages.only(&mut held, || service.is_draining()).await?;
    let (message, held) =
        decode_message(&service.resources.workers, message, call.encoding, limit, held).await?;
    if is_infer {
        let mut info = RequestInfo::default();
        let (completed, held) =
            infer::run(&service, message, held, call.deadline, call.received, &mut info, trace).await?;
        let parts = completed.response().message()?;
        let pieces = encode_message(&service.resources.workers, parts, call.response_encoding).await?;
        return Ok(body::single(
            call.response_encoding,
            hold_until_sent(pieces, held, call.response_encoding)?,
        ));
    }
    drop(held);
    let response = match (name, method) {
        (HEALTH, "Watch") => {
            let watched = health::requested_service(decode(message)?, has_key)?;
            let written = StreamBody::by(|sink| health::watch(service, watched, sink));
            return Ok(body::stream(call.response_encoding, written));
        }
        (HEALTH, "Check") => {
            health::check(&service, &health::requested_service(decode(message)?, has_key)?)?.encode_to_vec()
        }
        (INFERENCE, method) => inference(&service, method, message).await?,
        _ => return Err(unknown(path)),
    };
    let pieces =
        encode_message(&service.resources.workers, vec![response.into()], call.response_encoding).await?;
    Ok(body::single(call.response_encoding, pieces))
}

/// The calls about the server and its models.
async fn inference(service: &Arc<ModelService>, method: &str, message: Bytes) -> Result<Vec<u8>, GrpcStatus> {
    Ok(match method {
        "ServerLive" => ProbeResponse { ready: true }.encode_to_vec(),
        "ServerReady" => ProbeResponse { ready: service.is_ready() }.encode_to_vec(),
        "ModelReady" => {
            let request: ModelRequest = decode(message)?;
            // A model that does not exist is not ready; Triton's clients expect that instead of an error.
            let served = service.find(&request.name, Some(&request.version));
            ProbeResponse { ready: served.is_ok_and(|served| service.is_model_ready(&served)) }
                .encode_to_vec()
        }
        "ServerMetadata" => describe::server_metadata().encode_to_vec(),
        "ModelMetadata" => {
            let request: ModelRequest = decode(message)?;
            let model = service.model(&request.name, Some(&request.version)).await?;
            let all = service.models();
            let versions = all.iter().filter(|other| other.name == model.name()).map(|other| &*other.version);
            describe::model_metadata(&model, versions).encode_to_vec()
        }
        "ModelConfig" => {
            let request: ModelRequest = decode(message)?;
            let model = service.model(&request.name, Some(&request.version)).await?;
            describe::model_config(&model).encode_to_vec()
        }
        "ModelStatistics" => statistics(service, &decode(message)?)?,
        "RepositoryIndex" => {
            let request: RepositoryIndexRequest = decode(message)?;
            describe::index(service.models(), request.ready).encode_to_vec()
        }
        "RepositoryModelLoad" => {
            let request: RepositoryModelRequest = decode(message)?;
            if let Some(ParameterEntry { key, .. }) = request.parameters.first() {
                return Err(GrpcStatus::unimplemented(format!(
                    "unsupported load parameter `{key}`: models are loaded from the model directory"
                )));
            }
            service.reload(Some(&request.model_name)).await?;
            // The response has no fields.
            Vec::new()
        }
        "RepositoryModelUnload" => {
            let request: RepositoryModelRequest = decode(message)?;
            service.unload(&request.model_name).await?;
            Vec::new()
        }
        other => return Err(unsupported(other)),
    })
}

fn statistics(service: &ModelService, request: &ModelRequest) -> Result<Vec<u8>, GrpcStatus> {
    let models = if request.name.is_empty() {
        service.known()
    } else {
        let served = service.find(&request.name, Some(&request.version))?;
        served.known().cloned().into_iter().collect()
    };
    Ok(describe::statistics(&models).encode_to_vec())
}

/// The error of calls that the protocol has and this server has not, with an alternative.
fn unsupported(method: &str) -> GrpcStatus {
    let hint = match method {
        _ if ["SystemSharedMemory", "CudaSharedMemory"].iter().any(|prefix| method.starts_with(prefix)) => {
            "tensors in memory shared with the client are not supported; send them in the request"
        }
        "TraceSetting" => "tracing is not supported; /metrics has the time of each stage",
        "LogSettings" => "logging is set when the server starts",
        _ => return unknown(method),
    };
    GrpcStatus::unimplemented(format!("{method}: {hint}"))
}

fn unknown(call: &str) -> GrpcStatus {
    GrpcStatus::unimplemented(format!("unknown call `{call}`; supported services: {INFERENCE}, {HEALTH}"))
}
