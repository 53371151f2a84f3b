//! Why a request did not lead to a usable response.

use std::io;
use std::time::Duration;

use ureq::http::StatusCode;

use crate::retry::{Retry, Retryable};

/// A request that did not lead to a usable response. The reason holds no URL, since one may be signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct HttpError {
    /// The kind of failure.
    pub kind: HttpErrorKind,
    /// Description of the failure.
    pub reason: String,
    /// The delay that the server requests.
    pub retry_after: Option<Duration>,
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpErrorKind {
    /// The network failed; another attempt may succeed.
    Transient,
    /// The network failed in a way that another attempt does not change, such as an unknown host.
    Permanent,
    Certificate,
    /// The URL is plain http, which can be altered in transit.
    PlainHttp,
    /// The response breaks the protocol, or leads where the client does not go.
    Refused,
    TooLarge,
    /// The body is not what was requested, such as JSON of the right form.
    Malformed,
    Status(u16),
}

impl HttpError {
    pub fn new(kind: HttpErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), retry_after: None }
    }

    /// A status that is not a success, with the server's message.
    pub fn status(status: u16, message: Option<&str>, retry_after: Option<Duration>) -> Self {
        let name = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let name = name.map(|name| format!(" {name}")).unwrap_or_default();
        let message = message.map(|message| format!(": {message}")).unwrap_or_default();
        let reason = format!("server returned {status}{name}{message}");
        Self { kind: HttpErrorKind::Status(status), reason, retry_after }
    }

    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::new(HttpErrorKind::Refused, reason)
    }

    /// Whether another attempt may succeed.
    pub const fn is_transient(&self) -> bool {
        match self.kind {
            HttpErrorKind::Transient => true,
            HttpErrorKind::Status(status) => matches!(status, 408 | 429 | 500 | 502..=504),
            _ => false,
        }
    }
}

impl Retryable for HttpError {
    fn retry(&self) -> Retry {
        if self.is_transient() { Retry::After(self.retry_after) } else { Retry::Never }
    }
}

/// Describes what happened without the parts of the message that may hold a URL.
impl From<&ureq::Error> for HttpError {
    fn from(error: &ureq::Error) -> Self {
        use ureq::Error as E;
        let transient = |reason: &str| Self::new(HttpErrorKind::Transient, reason);
        let permanent = |reason: String| {
            let is_certificate = reason.contains("certificate");
            let kind = if is_certificate { HttpErrorKind::Certificate } else { HttpErrorKind::Permanent };
            Self::new(kind, reason)
        };
        match error {
            E::Io(error) => match error.kind() {
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => permanent(error.to_string()),
                io::ErrorKind::ConnectionRefused => transient("connection refused"),
                io::ErrorKind::UnexpectedEof => transient("the connection was closed"),
                _ => {
                    let text = error.to_string();
                    // The resolver's error has no kind of its own. An unknown name stays unknown.
                    if text.starts_with("failed to lookup address") && !text.contains("Temporary") {
                        permanent(text)
                    } else {
                        transient(&text)
                    }
                }
            },
            E::Timeout(_) => transient("timed out waiting for a response"),
            E::HostNotFound => permanent("host not found".to_owned()),
            E::ConnectionFailed | E::BodyStalled => transient("the connection failed"),
            E::ConnectProxyFailed(_) => transient("the proxy refused to connect"),
            E::Tls(reason) => permanent(format!("TLS: {reason}")),
            E::Rustls(error) => permanent(format!("TLS: {error}")),
            E::Protocol(_) => Self::refused("the response is not valid HTTP"),
            E::LargeResponseHeader(..) => Self::refused("the response's headers are too large"),
            E::InvalidProxyUrl => permanent("the proxy's URL is invalid".to_owned()),
            _ => permanent("the request could not be sent".to_owned()),
        }
    }
}
