//! `grpc.reflection`, by which tools like grpcurl learn what can be called without having its description.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use hyper::body::Body;
use prost::Message;

use super::call::Call;
use super::outbox::Outbox;
use super::reading::{Messages, unpack};
use super::status::{Code, Status};
use super::writing::pack;
use crate::ServeError;
use crate::memory::Reservation;
use crate::service::Service;

/// Both versions of the service; they differ in nothing but the name.
pub(crate) const SERVICES: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// The descriptions of all services, as `reflection/make` compiles them.
static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let set =
        FileDescriptorSet::decode(&include_bytes!("reflection/descriptors.bin")[..]).unwrap_or_default();
    set.file.into_iter().map(File::read).collect()
});

/// Answers questions until the client ends the stream or the server does.
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
    let mut answering = async || -> Result<(), Status> {
        loop {
            let mut held = Reservation::new(&service.budget);
            let next = messages.next(&mut held, || service.is_draining());
            let Some(message) = until_drained(&service, next).await? else { return Ok(()) };
            let (message, _held) = unpack(&service.aside, message, call.encoding, super::SMALL, held).await?;
            let asked = super::decode::<ServerReflectionRequest>(message)?;
            let answer = answer(asked).encode_to_vec();
            outbox.put(pack(&service.aside, vec![answer.into()], call.answer_encoding).await?);
        }
    };
    answering().await.err().unwrap_or(Status::OK)
}

/// What the future gives, unless the server is told to end first.
async fn until_drained<T>(
    service: &Service,
    next: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    tokio::select! {
        next = next => next,
        () = service.drained() => Err(ServeError::Draining.into()),
    }
}

fn answer(asked: ServerReflectionRequest) -> ServerReflectionResponse {
    let not_found = |what: &str| {
        Answer::Error(ErrorResponse {
            error_code: Code::NotFound as i32,
            error_message: format!("no {what}"),
        })
    };
    let file = |found: Option<&File>, what: &str| match found {
        Some(file) => {
            Answer::Files(FileDescriptorResponse { file_descriptor_proto: vec![file.bytes.clone()] })
        }
        None => not_found(what),
    };
    let answer = match &asked.question {
        Some(Question::FileByFilename(name)) => {
            file(FILES.iter().find(|file| file.name == *name), &format!("file `{name}`"))
        }
        Some(Question::FileContainingSymbol(symbol)) => {
            let has = |file: &&File| file.symbols.iter().any(|known| known == symbol);
            file(FILES.iter().find(has), &format!("symbol `{symbol}`"))
        }
        Some(Question::FileContainingExtension(_) | Question::AllExtensionNumbersOfType(_)) => {
            not_found("extensions")
        }
        Some(Question::ListServices(_)) => {
            let names = FILES.iter().flat_map(|file| &file.services);
            Answer::Services(ListServiceResponse {
                service: names.map(|name| ServiceResponse { name: name.clone() }).collect(),
            })
        }
        None => not_found("such question"),
    };
    ServerReflectionResponse {
        valid_host: asked.host.clone(),
        original_request: Some(asked),
        answer: Some(answer),
    }
}

/// One file of descriptions.
struct File {
    name: String,
    bytes: Vec<u8>,
    services: Vec<String>,
    /// Full names of services, methods, messages and enumerations.
    symbols: Vec<String>,
}

impl File {
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

impl Descriptor {
    fn symbols(&self, parent: &str, symbols: &mut Vec<String>) {
        let name = format!("{parent}.{}", self.name);
        symbols.extend(self.enum_type.iter().map(|named| format!("{name}.{}", named.name)));
        for nested in &self.nested_type {
            nested.symbols(&name, symbols);
        }
        symbols.push(name);
    }
}

// What is read of `google.protobuf.FileDescriptorSet`.

#[derive(Clone, PartialEq, Message)]
struct FileDescriptorSet {
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
    message_type: Vec<Descriptor>,
    #[prost(message, repeated, tag = "5")]
    enum_type: Vec<Named>,
    #[prost(message, repeated, tag = "6")]
    service: Vec<ServiceDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct Descriptor {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "3")]
    nested_type: Vec<Descriptor>,
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
    #[prost(oneof = "Question", tags = "3, 4, 5, 6, 7")]
    question: Option<Question>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Question {
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
    #[prost(oneof = "Answer", tags = "4, 6, 7")]
    answer: Option<Answer>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Answer {
    #[prost(message, tag = "4")]
    Files(FileDescriptorResponse),
    #[prost(message, tag = "6")]
    Services(ListServiceResponse),
    #[prost(message, tag = "7")]
    Error(ErrorResponse),
}

#[derive(Clone, PartialEq, Message)]
struct FileDescriptorResponse {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file_descriptor_proto: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct ListServiceResponse {
    #[prost(message, repeated, tag = "1")]
    service: Vec<ServiceResponse>,
}

#[derive(Clone, PartialEq, Message)]
struct ServiceResponse {
    #[prost(string, tag = "1")]
    name: String,
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

    fn ask(question: Question) -> Answer {
        let asked = ServerReflectionRequest { host: "h".to_owned(), question: Some(question) };
        let response = answer(asked.clone());
        assert_eq!((response.valid_host.as_str(), response.original_request), ("h", Some(asked)));
        response.answer.unwrap()
    }

    #[test]
    fn every_service_is_listed_and_described() {
        let Answer::Services(listed) = ask(Question::ListServices(String::new())) else { panic!() };
        let names: Vec<_> = listed.service.into_iter().map(|service| service.name).collect();
        assert_eq!(names, [super::super::INFERENCE, super::super::HEALTH, SERVICES[0], SERVICES[1]]);
        for name in names {
            assert!(matches!(ask(Question::FileContainingSymbol(name)), Answer::Files(_)));
        }
    }

    #[test]
    fn symbols_at_any_depth_are_found_and_others_are_not() {
        for symbol in [
            "inference.ModelInferRequest",
            "inference.ModelInferRequest.InferInputTensor",
            "inference.DataType",
            "inference.GRPCInferenceService.ModelInfer",
            "grpc.health.v1.HealthCheckResponse.ServingStatus",
        ] {
            let found = ask(Question::FileContainingSymbol(symbol.to_owned()));
            assert!(matches!(found, Answer::Files(_)), "{symbol}");
        }
        for question in [
            Question::FileContainingSymbol("inference.Nothing".to_owned()),
            Question::FileByFilename("nothing.proto".to_owned()),
            Question::AllExtensionNumbersOfType("inference.ModelInferRequest".to_owned()),
        ] {
            let Answer::Error(error) = ask(question) else { panic!() };
            assert_eq!(error.error_code, Code::NotFound as i32);
        }
    }
}
