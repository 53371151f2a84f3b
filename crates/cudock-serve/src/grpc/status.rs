//! How a call ended, in gRPC's words.

use std::time::Duration;

use cudock_base::percent;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::ServeError;

/// The status codes of gRPC that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Ok = 0,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
}

/// A code and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// How long a client with a retry policy should wait.
    pushback: Option<Duration>,
}

impl Status {
    /// The call went well.
    pub(crate) const OK: Self = Self { code: Code::Ok, message: String::new(), pushback: None };

    /// With that code and message.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), pushback: None }
    }

    /// The client's request cannot be understood.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// Writes it the way trailers and trailers-only answers carry it.
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

    /// The trailers of a call that ended so.
    pub(crate) fn trailers(&self) -> HeaderMap {
        let mut trailers = HeaderMap::with_capacity(3);
        self.write(&mut trailers);
        trailers
    }
}

impl From<ServeError> for Status {
    fn from(error: ServeError) -> Self {
        let code = match &error {
            ServeError::NoModel { .. } | ServeError::NoVersion { .. } | ServeError::NotFound(_) => {
                Code::NotFound
            }
            ServeError::WhichModel(_)
            | ServeError::Malformed(_)
            | ServeError::Unwritable(_)
            | ServeError::NotAcceptable(_)
            | ServeError::BadRequest(_)
            | ServeError::TooManyRows { .. } => Code::InvalidArgument,
            ServeError::UnsupportedMediaType(_) | ServeError::MethodNotAllowed { .. } => Code::Unimplemented,
            ServeError::BodyTooLarge { .. } | ServeError::OverBudget { .. } | ServeError::Full { .. } => {
                Code::ResourceExhausted
            }
            ServeError::Late | ServeError::BodyTooSlow => Code::DeadlineExceeded,
            ServeError::Unauthorized => Code::Unauthenticated,
            ServeError::NotReady { .. } | ServeError::Draining => Code::Unavailable,
            ServeError::Engine(_) | ServeError::Reload { .. } => Code::Internal,
        };
        Self { code, message: error.to_string(), pushback: error.retry_after() }
    }
}

impl From<super::wire::WireError> for Status {
    fn from(error: super::wire::WireError) -> Self {
        Self::invalid(format!("the message is not protobuf: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_code() {
        let failures = [
            (ServeError::Draining, Code::Unavailable),
            (ServeError::Late, Code::DeadlineExceeded),
            (ServeError::Unauthorized, Code::Unauthenticated),
            (ServeError::Engine("lost".into()), Code::Internal),
            (ServeError::Full { retry_after: Duration::from_millis(7) }, Code::ResourceExhausted),
        ];
        for (error, code) in failures {
            let said = error.to_string();
            let status = Status::from(error);
            assert_eq!((status.code, status.message), (code, said));
        }
    }

    #[test]
    fn a_full_queue_tells_clients_when_to_come_again() {
        let status = Status::from(ServeError::Full { retry_after: Duration::from_millis(250) });
        assert_eq!(status.trailers()["grpc-retry-pushback-ms"], "250");
        assert!(!Status::from(ServeError::Late).trailers().contains_key("grpc-retry-pushback-ms"));
    }

    #[test]
    fn success_carries_no_message() {
        let trailers = Status::OK.trailers();
        assert_eq!(trailers["grpc-status"], "0");
        assert_eq!(trailers.len(), 1);
    }

    #[test]
    fn a_message_of_any_text_fits_into_a_header() {
        let trailers = Status::invalid("100 % of “Ä”\nand more").trailers();
        assert_eq!(trailers["grpc-status"], "3");
        assert_eq!(trailers["grpc-message"], "100 %25 of %E2%80%9C%C3%84%E2%80%9D%0Aand more");
    }
}
