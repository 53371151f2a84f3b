//! Errors of requests.

use std::time::Duration;

use cudock_server::{HttpRejection, WorkerLost, write_retry_after};
use hyper::StatusCode;
use hyper::header::HeaderMap;

/// The reason why a request failed. Its message is sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GatewayError {
    #[error(transparent)]
    Rejected(#[from] HttpRejection),
    /// No upstream became available while the request was held.
    #[error("no upstream is available; waited {} ms", waited.as_millis())]
    Unavailable { waited: Duration },
    /// The connection ended, or what came was not HTTP.
    #[error("upstream {upstream} failed: {reason}")]
    UpstreamFailed { upstream: String, reason: String },
    #[error("upstream {upstream} did not answer within {} ms", timeout.as_millis())]
    UpstreamTimeout { upstream: String, timeout: Duration },
    /// The client's deadline has passed, or will pass before the answer.
    #[error("deadline exceeded")]
    DeadlineExceeded,
    #[error("the gateway is shutting down")]
    Draining,
    #[error("not found: {0}; the gateway has /_gateway/health, ready, live and metrics")]
    NotFound(String),
}

impl GatewayError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Rejected(rejection) => rejection.status(),
            Self::Unavailable { .. } | Self::Draining => StatusCode::SERVICE_UNAVAILABLE,
            Self::UpstreamFailed { .. } => StatusCode::BAD_GATEWAY,
            Self::UpstreamTimeout { .. } | Self::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
        }
    }

    /// Writes the headers that belong to the status.
    pub(crate) fn write_headers(&self, headers: &mut HeaderMap) {
        match self {
            Self::Rejected(rejection) => rejection.write_headers(headers),
            Self::Unavailable { .. } | Self::Draining => write_retry_after(headers, Duration::from_secs(1)),
            _ => {}
        }
    }
}

impl From<WorkerLost> for GatewayError {
    fn from(error: WorkerLost) -> Self {
        Self::Rejected(error.into())
    }
}
