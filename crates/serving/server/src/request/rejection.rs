//! Rejected requests.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderValue};

use crate::limits::worker_pool::WorkerLost;
use crate::request::content_encoding::ContentEncoding;

/// The reason why a request is rejected. Its message is sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpRejection {
    /// The request violates the protocol.
    #[error("{0}")]
    BadRequest(String),
    #[error("API key required: send `Authorization: Bearer KEY` or `X-API-Key: KEY`")]
    Unauthorized,
    /// The host or the web page of the request is not allowed.
    #[error("{0}")]
    Forbidden(String),
    #[error("the body did not arrive in time")]
    BodyTooSlow,
    #[error("the body is larger than {limit} bytes")]
    BodyTooLarge { limit: usize },
    /// The request needs more memory than the server may ever use for requests.
    #[error("the request needs {needed} bytes of memory, more than the server may hold ({limit})")]
    MemoryExceeded { needed: usize, limit: usize },
    /// The type of the body is not supported.
    #[error("{0}")]
    UnsupportedMediaType(String),
    /// The compression of the body is not supported.
    #[error("unsupported content-encoding `{name}`; supported: {}", ContentEncoding::NAMES)]
    UnsupportedEncoding { name: String },
    /// A queue or the memory budget is full.
    #[error("too many requests are queued; retry in {} ms", retry_after.as_millis())]
    Overloaded { retry_after: Duration },
    /// The client sends requests faster than it may.
    #[error("rate limit exceeded; retry in {} ms", retry_after.as_millis())]
    RateLimited { retry_after: Duration },
    /// The worker thread that processed the request ended.
    #[error(transparent)]
    WorkerLost(#[from] WorkerLost),
}

impl HttpRejection {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge { .. } | Self::MemoryExceeded { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType(_) | Self::UnsupportedEncoding { .. } => {
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            Self::Overloaded { .. } | Self::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::WorkerLost(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Time after which a retry may succeed, if waiting helps.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Overloaded { retry_after } | Self::RateLimited { retry_after } => Some(*retry_after),
            _ => None,
        }
    }

    /// Writes the headers that belong to the status.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        if let Some(after) = self.retry_after() {
            write_retry_after(headers, after);
        }
        match self {
            Self::Unauthorized => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            // Shows clients that the encoding and not the type is at fault (RFC 9110, 15.5.16).
            Self::UnsupportedEncoding { .. } => {
                headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(ContentEncoding::NAMES));
            }
            _ => {}
        }
    }
}

/// Writes the delay of a retry: the standard header has a resolution of one second; clients that can do better read the
/// milliseconds.
pub fn write_retry_after(headers: &mut HeaderMap, after: Duration) {
    let milliseconds = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    headers.insert(header::RETRY_AFTER, milliseconds.div_ceil(1000).max(1).into());
    headers.insert("retry-after-ms", milliseconds.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_belong_to_the_status() {
        let mut headers = HeaderMap::new();
        HttpRejection::Overloaded { retry_after: Duration::from_millis(1040) }.write_headers(&mut headers);
        assert_eq!((&headers["retry-after"], &headers["retry-after-ms"]), (&2.into(), &1040.into()));
        let mut headers = HeaderMap::new();
        HttpRejection::Unauthorized.write_headers(&mut headers);
        assert_eq!((headers.len(), &headers["www-authenticate"]), (1, &HeaderValue::from_static("Bearer")));
        let mut headers = HeaderMap::new();
        HttpRejection::UnsupportedEncoding { name: "br".to_owned() }.write_headers(&mut headers);
        assert_eq!(
            (headers.len(), &headers["accept-encoding"]),
            (1, &HeaderValue::from_static("gzip, deflate, zstd"))
        );
    }
}
