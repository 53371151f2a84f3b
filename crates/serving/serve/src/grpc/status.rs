//! The gRPC status of a call.

use std::time::Duration;

use cudock_base::protobuf::WireError;
use cudock_base::text::percent;
use cudock_server::{HttpRejection, WorkerLost};
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::ServeError;

/// The gRPC status codes that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrpcCode {
    Ok = 0,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrpcStatus {
    pub(crate) code: GrpcCode,
    pub(crate) message: String,
    /// Delay for clients with a retry policy.
    pushback: Option<Duration>,
}

impl GrpcStatus {
    pub(crate) const OK: Self = Self { code: GrpcCode::Ok, message: String::new(), pushback: None };

    pub(crate) fn new(code: GrpcCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), ..Self::OK }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(GrpcCode::InvalidArgument, message)
    }

    pub(crate) fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(GrpcCode::Unimplemented, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(GrpcCode::Internal, message)
    }

    /// Writes it as headers, for trailers and trailers-only responses.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        const STATUS: HeaderName = HeaderName::from_static("grpc-status");
        const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
        const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");
        headers.insert(STATUS, HeaderValue::from(self.code as u16));
        if !self.message.is_empty() {
            // Percent-encoded text is visible ASCII, which a header can always carry.
            if let Ok(value) = HeaderValue::from_str(&percent::encode_printable(&self.message)) {
                headers.insert(MESSAGE, value);
            }
        }
        if let Some(wait) = self.pushback {
            let milliseconds = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
            headers.insert(PUSHBACK, HeaderValue::from(milliseconds));
        }
    }

    pub(crate) fn trailers(&self) -> HeaderMap {
        let mut trailers = HeaderMap::with_capacity(3);
        self.write(&mut trailers);
        trailers
    }
}

impl From<ServeError> for GrpcStatus {
    fn from(error: ServeError) -> Self {
        let code = match &error {
            ServeError::Rejected(rejection) => rejection_code(rejection),
            ServeError::ModelNotFound { .. }
            | ServeError::VersionNotFound { .. }
            | ServeError::NotFound(_) => GrpcCode::NotFound,
            ServeError::AmbiguousModel(_)
            | ServeError::RequestError(_)
            | ServeError::Input(_)
            | ServeError::ResponseError(_)
            | ServeError::NotAcceptable(_) => GrpcCode::InvalidArgument,
            ServeError::MethodNotAllowed { .. } => GrpcCode::Unimplemented,
            ServeError::DeadlineExceeded => GrpcCode::DeadlineExceeded,
            ServeError::DeviceMemory(_) => GrpcCode::ResourceExhausted,
            ServeError::NotReady { .. }
            | ServeError::NoGpu { .. }
            | ServeError::NotLoaded { .. }
            | ServeError::Draining => GrpcCode::Unavailable,
            ServeError::KeptLoaded(_) => GrpcCode::FailedPrecondition,
            ServeError::Engine(_) | ServeError::Reload { .. } | ServeError::LoadFailed { .. } => {
                GrpcCode::Internal
            }
        };
        Self { code, message: error.to_string(), pushback: error.retry_after() }
    }
}

fn rejection_code(rejection: &HttpRejection) -> GrpcCode {
    match rejection {
        HttpRejection::BadRequest(_) => GrpcCode::InvalidArgument,
        HttpRejection::Unauthorized => GrpcCode::Unauthenticated,
        HttpRejection::Forbidden(_) => GrpcCode::PermissionDenied,
        HttpRejection::BodyTooSlow => GrpcCode::DeadlineExceeded,
        HttpRejection::BodyTooLarge { .. }
        | HttpRejection::MemoryExceeded { .. }
        | HttpRejection::Overloaded { .. }
        | HttpRejection::RateLimited { .. } => GrpcCode::ResourceExhausted,
        HttpRejection::UnsupportedMediaType(_) | HttpRejection::UnsupportedEncoding { .. } => {
            GrpcCode::Unimplemented
        }
        HttpRejection::WorkerLost(_) => GrpcCode::Internal,
    }
}

impl From<HttpRejection> for GrpcStatus {
    fn from(rejection: HttpRejection) -> Self {
        ServeError::from(rejection).into()
    }
}

impl From<WorkerLost> for GrpcStatus {
    fn from(lost: WorkerLost) -> Self {
        ServeError::from(lost).into()
    }
}

impl From<WireError> for GrpcStatus {
    fn from(error: WireError) -> Self {
        Self::invalid(format!("invalid protobuf message: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_map_to_status_codes() {
        let overloaded = HttpRejection::Overloaded { retry_after: Duration::from_millis(7) };
        let failures = [
            (ServeError::Draining, GrpcCode::Unavailable),
            (ServeError::DeadlineExceeded, GrpcCode::DeadlineExceeded),
            (HttpRejection::Unauthorized.into(), GrpcCode::Unauthenticated),
            (ServeError::Engine("lost".into()), GrpcCode::Internal),
            (ServeError::DeviceMemory("full".into()), GrpcCode::ResourceExhausted),
            (overloaded.into(), GrpcCode::ResourceExhausted),
        ];
        for (error, code) in failures {
            let message = error.to_string();
            let status = GrpcStatus::from(error);
            assert_eq!((status.code, status.message), (code, message));
        }
    }

    #[test]
    fn an_overload_status_contains_the_retry_delay() {
        let status = GrpcStatus::from(HttpRejection::Overloaded { retry_after: Duration::from_millis(250) });
        assert_eq!(status.trailers()["grpc-retry-pushback-ms"], "250");
        let late = GrpcStatus::from(ServeError::DeadlineExceeded).trailers();
        assert!(!late.contains_key("grpc-retry-pushback-ms"));
    }

    #[test]
    fn success_carries_no_message_and_any_other_text_fits_into_a_header() {
        let trailers = GrpcStatus::OK.trailers();
        assert_eq!(trailers["grpc-status"], "0");
        assert_eq!(trailers.len(), 1);
        let trailers = GrpcStatus::invalid("100 % of “Ä”\nand more").trailers();
        assert_eq!(trailers["grpc-status"], "3");
        assert_eq!(trailers["grpc-message"], "100 %25 of %E2%80%9C%C3%84%E2%80%9D%0Aand more");
    }
}
