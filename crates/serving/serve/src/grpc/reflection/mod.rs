//! `grpc.reflection`, with which tools like grpcurl discover services.

use std::sync::{Arc, LazyLock};

use cudock_server::Reservation;
use hyper::body::Incoming;
use prost::Message;

use super::call::Call;
use super::messages::decode;
use super::messages::encode::encode_message;
use super::messages::stream::{MessageStream, decode_message};
use super::services::SMALL;
use super::status::{GrpcCode, GrpcStatus};
use super::stream_body::MessageSink;
use crate::ServeError;
use crate::service::ModelService;

/// Both versions of the service; only their names differ.
pub(crate) const SERVICES: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// The descriptors of all services, compiled by `reflection/make`.
static FILES: LazyLock<Vec<ProtoFile>> = LazyLock::new(|| {
    let set = FileDescriptors::decode(&include_bytes!("descriptors.bin")[..]).unwrap_or_default();
    set.file.into_iter().map(ProtoFile::read).collect()
});

/// Answers requests until the client or the server ends the stream.
pub(crate) async fn serve(
    service: Arc<ModelService>,
    call: Call,
    mut messages: MessageStream<Incoming>,
    sink: MessageSink,
) -> GrpcStatus {
    let mut answering = async || -> Result<(), GrpcStatus> {
        loop {
            let mut held = Reservation::new(&service.resources.budget);
            let next = messages.next(&mut held, || service.is_draining());
            let message = tokio::select! {
                message = next => message?,
                () = service.resources.drain.begun() => return Err(ServeError::Draining.into()),
            };
            let Some(message) = message else { return Ok(()) };
            let workers = &service.resources.workers;
            let (message, _held) = decode_message(workers, message, call.encoding, SMALL, held).await?;
            let request = decode::<ServerReflectionRequest>(message)?;
            let response = response(request).encode_to_vec();
            sink.put(encode_message(workers, vec![response.into()], call.response_encoding).await?);
        }
    };
    answering().await.err().unwrap_or(GrpcStatus::OK)
}

fn response(request: ServerReflectionRequest) -> ServerReflectionResponse {
    let not_found = |what: &str| {
        MessageResponse::Error(ErrorResponse {
            error_code: GrpcCode::NotFound as i32,
            error_message: format!("{what} not found"),
        })
    };
    let file = |found: Option<&ProtoFile>, what: &str| match found {
        Some(file) => MessageResponse::Files(FileDescriptors { file: vec![file.bytes.clone()] }),
        None => not_found(what),
    };
    let response = match &request.message_request {
        Some(MessageRequest::FileByFilename(name)) => {
            file(FILES.iter().find(|file| file.name == *name), &format!("file `{name}`"))
        }
        Some(MessageRequest::FileContainingSymbol(symbol)) => {
            let has = |file: &&ProtoFile| file.symbols.iter().any(|known| known == symbol);
            file(FILES.iter().find(has), &format!("symbol `{symbol}`"))
        }
        Some(MessageRequest::FileContainingExtension(_) | MessageRequest::AllExtensionNumbersOfType(_)) => {
            not_found("extensions")
        }
        Some(MessageRequest::ListServices(_)) => {
            let names = FILES.iter().flat_map(|file| &file.services);
            let service = names.map(|name| Named { name: name.clone() }).collect();
            MessageResponse::Services(ListServiceResponse { service })
        }
        None => not_found("request"),
    };
    ServerReflectionResponse {
        valid_host: request.host.clone(),
        original_request: Some(request),
        response: Some(response),
    }
}

struct ProtoFile {
    name: String,
    bytes: Vec<u8>,
    services: Vec<String>,
    /// Full names of services, methods, messages and enumerations.
    symbols: Vec<String>,
}

impl ProtoFile {
    fn read(bytes: Vec<u8>) -> Self {
        let file = FileDescriptor::decode(&bytes[..]).unwrap_or_default();
        let full = |name: &str| format!("{}.{name}", file.package);
        let services: Vec<String> = file.service.iter().map(|service| full(&service.name)).collect();
        let mut symbols = services.clone();
        for (service, name) in file.service.iter().zip(&services) {
            symbols.extend(service.method.iter().map(|method| format!("{name}.{}", method.name)));
        }
        symbols.extend(file.enum_type.iter().map(|named| full(&named.name)));
        for message in &file.message_type {
            message.symbols(&file.package, &mut symbols);
        }
        Self { name: file.name, bytes, services, symbols }
    }
}

impl MessageDescriptor {
    fn symbols(&self, parent: &str, symbols: &mut Vec<String>) {
        let name = format!("{parent}.{}", self.name);
        symbols.extend(self.enum_type.iter().map(|named| format!("{name}.{}", named.name)));
        for nested in &self.nested_type {
            nested.symbols(&name, symbols);
        }
        symbols.push(name);
    }
}

// The part of `google.protobuf.FileDescriptorSet` that is read.

/// `FileDescriptorSet`, and `FileDescriptorResponse`, which has the same field.
#[derive(Clone, PartialEq, Message)]
struct FileDescriptors {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct FileDescriptor {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "4")]
    message_type: Vec<MessageDescriptor>,
    #[prost(message, repeated, tag = "5")]
    enum_type: Vec<Named>,
    #[prost(message, repeated, tag = "6")]
    service: Vec<ServiceDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct MessageDescriptor {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "3")]
    nested_type: Vec<MessageDescriptor>,
    #[prost(message, repeated, tag = "4")]
    enum_type: Vec<Named>,
}

#[derive(Clone, PartialEq, Message)]
struct ServiceDescriptor {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    method: Vec<Named>,
}

/// A descriptor of which only the name is read, and a service in a list.
#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
}

// The messages of the service itself.

#[derive(Clone, PartialEq, Message)]
struct ServerReflectionRequest {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(oneof = "MessageRequest", tags = "3, 4, 5, 6, 7")]
    message_request: Option<MessageRequest>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum MessageRequest {
    #[prost(string, tag = "3")]
    FileByFilename(String),
    #[prost(string, tag = "4")]
    FileContainingSymbol(String),
    #[prost(message, tag = "5")]
    FileContainingExtension(ExtensionRequest),
    #[prost(string, tag = "6")]
    AllExtensionNumbersOfType(String),
    #[prost(string, tag = "7")]
    ListServices(String),
}

#[derive(Clone, PartialEq, Message)]
struct ExtensionRequest {
    #[prost(string, tag = "1")]
    containing_type: String,
    #[prost(int32, tag = "2")]
    extension_number: i32,
}

#[derive(Clone, PartialEq, Message)]
struct ServerReflectionResponse {
    #[prost(string, tag = "1")]
    valid_host: String,
    #[prost(message, optional, tag = "2")]
    original_request: Option<ServerReflectionRequest>,
    #[prost(oneof = "MessageResponse", tags = "4, 6, 7")]
    response: Option<MessageResponse>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum MessageResponse {
    #[prost(message, tag = "4")]
    Files(FileDescriptors),
    #[prost(message, tag = "6")]
    Services(ListServiceResponse),
    #[prost(message, tag = "7")]
    Error(ErrorResponse),
}

#[derive(Clone, PartialEq, Message)]
struct ListServiceResponse {
    #[prost(message, repeated, tag = "1")]
    service: Vec<Named>,
}

#[derive(Clone, PartialEq, Message)]
struct ErrorResponse {
    #[prost(int32, tag = "1")]
    error_code: i32,
    #[prost(string, tag = "2")]
    error_message: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::services::{HEALTH, INFERENCE};

    fn ask(message_request: MessageRequest) -> MessageResponse {
        let request =
            ServerReflectionRequest { host: "h".to_owned(), message_request: Some(message_request) };
        let response = response(request.clone());
        assert_eq!((response.valid_host.as_str(), response.original_request), ("h", Some(request)));
        response.response.unwrap()
    }

    #[test]
    fn every_service_is_listed_and_described() {
        let MessageResponse::Services(listed) = ask(MessageRequest::ListServices(String::new())) else {
            panic!()
        };
        let names: Vec<_> = listed.service.into_iter().map(|service| service.name).collect();
        assert_eq!(names, [INFERENCE, HEALTH, SERVICES[0], SERVICES[1]]);
        for name in names {
            assert!(matches!(ask(MessageRequest::FileContainingSymbol(name)), MessageResponse::Files(_)));
        }
    }

    #[test]
    fn nested_symbols_are_found_and_unknown_ones_are_not() {
        for symbol in [
            "inference.ModelInferRequest",
            "inference.ModelInferRequest.InferInputTensor",
            "inference.DataType",
            "inference.GRPCInferenceService.ModelInfer",
            "grpc.health.v1.HealthCheckResponse.ServingStatus",
        ] {
            let found = ask(MessageRequest::FileContainingSymbol(symbol.to_owned()));
            assert!(matches!(found, MessageResponse::Files(_)), "{symbol}");
        }
        for message_request in [
            MessageRequest::FileContainingSymbol("inference.Nothing".to_owned()),
            MessageRequest::FileByFilename("nothing.proto".to_owned()),
            MessageRequest::AllExtensionNumbersOfType("inference.ModelInferRequest".to_owned()),
        ] {
            let MessageResponse::Error(error) = ask(message_request) else { panic!() };
            assert_eq!(error.error_code, GrpcCode::NotFound as i32);
        }
    }
}
