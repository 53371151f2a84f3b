//! The Open Inference Protocol over gRPC, with the calls that Triton adds to it.
//!
//! There is no gRPC library behind this. A call is an HTTP/2 request whose body is messages with five bytes before
//! each, and whose outcome is in the trailers; hyper does HTTP/2, and the rest is here in a few small files. What it
//! gives: tensors go from the connection's buffer to the engine and back without being copied on the way, a client
//! that leaves takes its requests with it, and one that does not read or write holds up nobody.

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
mod ordered;
mod outbox;
mod reading;
mod reflection;
mod status;
mod stream;
mod wire;
mod writing;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, Response};
use prost::Message;

pub(crate) use self::body::GrpcBody;
use self::call::Call;
use self::infer::About;
use self::messages::{
    Empty, ModelReadyResponse, ModelRequest, RepositoryIndexRequest, RepositoryModelLoadRequest,
    ServerLiveResponse, ServerReadyResponse,
};
use self::outbox::Written;
use self::reading::{Messages, Turn, unpack};
use self::status::{Code, Status};
use self::writing::{counted, pack};
use crate::ServeError;
use crate::memory::Reservation;
use crate::service::Service;

const INFERENCE: &str = "inference.GRPCInferenceService";
const HEALTH: &str = "grpc.health.v1.Health";

/// Most bytes of a message that carries no tensors.
const SMALL: usize = 1 << 20;

/// Answers a gRPC call. The HTTP status is always 200; how the call went is in `grpc-status`.
pub(crate) async fn handle<B>(service: Arc<Service>, request: Request<B>) -> Response<GrpcBody>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let has_key = service.settings.keys.allow(&head.headers);
    let outcome = match Call::read(&head.headers, Instant::now()) {
        _ if !has_key && !is_open(path) => Err(ServeError::Unauthorized.into()),
        Ok(call) => route(service, path, call, body, has_key).await,
        Err(status) => Err(status),
    };
    outcome.unwrap_or_else(|status| body::refusal(&status))
}

/// Whether a call is answered without a key: what probes ask.
fn is_open(path: &str) -> bool {
    let call = path.strip_prefix('/').and_then(|path| path.rsplit_once('/')).unwrap_or_default();
    matches!(call, (HEALTH, _) | (INFERENCE, "ServerLive" | "ServerReady"))
}

async fn route<B>(
    service: Arc<Service>,
    path: &str,
    call: Call,
    body: B,
    has_key: bool,
) -> Result<Response<GrpcBody>, Status>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let patience = service.settings.client_timeout;
    let limit = service.limits().body;
    let (name, method) = path.strip_prefix('/').and_then(|path| path.rsplit_once('/')).unwrap_or_default();
    if (name, method) == (INFERENCE, "ModelStreamInfer") {
        let messages = Messages::new(body, limit, Turn::Leisure, patience);
        let written = Written::by(|outbox| stream::serve(service, call, messages, outbox));
        return Ok(body::stream(call.answer_encoding, written));
    }
    if reflection::SERVICES.contains(&name) && method == "ServerReflectionInfo" {
        let messages = Messages::new(body, SMALL, Turn::Leisure, patience);
        let written = Written::by(|outbox| reflection::serve(service, call, messages, outbox));
        return Ok(body::stream(call.answer_encoding, written));
    }
    let is_infer = (name, method) == (INFERENCE, "ModelInfer");
    let limit = if is_infer { limit } else { limit.min(SMALL) };
    let mut held = Reservation::new(&service.budget);
    let messages = Messages::new(body, limit, Turn::Owed, patience);
    let message = messages.only(&mut held, || service.is_draining()).await?;
    let (message, held) = unpack(&service.aside, message, call.encoding, limit, held).await?;
    if is_infer {
        let mut about = About::default();
        let (answered, held) =
            infer::run(&service, message, held, call.deadline, call.received, &mut about).await?;
        let pieces = pack(&service.aside, answered.response().message()?, call.answer_encoding).await?;
        return Ok(body::single(call.answer_encoding, counted(pieces, held)?));
    }
    drop(held);
    let answer = match (name, method) {
        (HEALTH, "Watch") => {
            let watched = health::asked(decode(message)?, has_key)?;
            let written = Written::by(|outbox| health::watch(service, watched, outbox));
            return Ok(body::stream(call.answer_encoding, written));
        }
        (HEALTH, "Check") => {
            health::check(&service, &health::asked(decode(message)?, has_key)?)?.encode_to_vec()
        }
        (INFERENCE, method) => inference(&service, method, message).await?,
        _ => return Err(unknown(path)),
    };
    let pieces = pack(&service.aside, vec![answer.into()], call.answer_encoding).await?;
    Ok(body::single(call.answer_encoding, pieces))
}

/// The calls about the server and its models.
async fn inference(service: &Arc<Service>, method: &str, message: Bytes) -> Result<Vec<u8>, Status> {
    Ok(match method {
        "ServerLive" => ServerLiveResponse { live: service.is_live() }.encode_to_vec(),
        "ServerReady" => ServerReadyResponse { ready: service.is_ready() }.encode_to_vec(),
        "ModelReady" => {
            let asked: ModelRequest = decode(message)?;
            // A model that is not there is not ready; Triton's clients expect that rather than an error.
            let model = service.model(&asked.name, Some(&asked.version));
            ModelReadyResponse { ready: model.is_ok_and(|model| model.is_ready()) }.encode_to_vec()
        }
        "ServerMetadata" => describe::server_metadata().encode_to_vec(),
        "ModelMetadata" => {
            let asked: ModelRequest = decode(message)?;
            let model = service.model(&asked.name, Some(&asked.version))?;
            describe::model_metadata(&model, &service.models()).encode_to_vec()
        }
        "ModelConfig" => {
            let asked: ModelRequest = decode(message)?;
            describe::model_config(&*service.model(&asked.name, Some(&asked.version))?).encode_to_vec()
        }
        "ModelStatistics" => statistics(service, &decode(message)?)?,
        "RepositoryIndex" => {
            let asked: RepositoryIndexRequest = decode(message)?;
            describe::index(service.models(), asked.ready).encode_to_vec()
        }
        "RepositoryModelLoad" => {
            let asked: RepositoryModelLoadRequest = decode(message)?;
            if let Some(parameter) = asked.parameters.first() {
                return Err(Status::new(
                    Code::Unimplemented,
                    format!(
                        "models are loaded from the server's own folder, without parameters: `{}`",
                        parameter.key
                    ),
                ));
            }
            service.reload(Some(&asked.model_name)).await?;
            Empty {}.encode_to_vec()
        }
        other => return Err(unsupported(other)),
    })
}

fn statistics(service: &Service, asked: &ModelRequest) -> Result<Vec<u8>, Status> {
    let models = if asked.name.is_empty() {
        service.loaded().to_vec()
    } else {
        vec![service.model(&asked.name, Some(&asked.version))?]
    };
    let counts = models
        .iter()
        .map(|model| (model.name().to_owned(), model.version().to_owned(), model.statistics()))
        .collect();
    Ok(describe::statistics(counts).encode_to_vec())
}

/// The refusal of calls the protocol has and this server has not, with what to do instead.
fn unsupported(method: &str) -> Status {
    let why = match method {
        "RepositoryModelUnload" => "take the model's file out of the folder to unload it",
        "SystemSharedMemoryStatus"
        | "SystemSharedMemoryRegister"
        | "SystemSharedMemoryUnregister"
        | "CudaSharedMemoryStatus"
        | "CudaSharedMemoryRegister"
        | "CudaSharedMemoryUnregister" => {
            "tensors in memory shared with the client are not supported; send them in the request"
        }
        "TraceSetting" => "tracing is not supported; /metrics has the time of each stage",
        "LogSettings" => "logging is set when the server starts",
        _ => return unknown(method),
    };
    Status::new(Code::Unimplemented, format!("{method}: {why}"))
}

fn unknown(call: &str) -> Status {
    Status::new(Code::Unimplemented, format!("no call `{call}`; there are those of {INFERENCE} and {HEALTH}"))
}

fn decode<M: Message + Default>(message: Bytes) -> Result<M, Status> {
    M::decode(message).map_err(|error| Status::invalid(format!("the message cannot be read: {error}")))
}
