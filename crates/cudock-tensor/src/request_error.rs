//! Errors of requests.

use crate::RequestLimits;

/// An invalid request. The message is sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A syntax error in the body.
    #[error("{path}{}{message} (at byte {offset})", if path.is_empty() { "" } else { ": " })]
    Body {
        /// The field of the request, for example `input[3][17]`; empty for the whole request.
        path: String,
        /// The offset in the body.
        offset: usize,
        message: String,
    },
    /// The request does not match the model.
    #[error("{0}")]
    Mismatch(String),
    /// The request exceeds a limit.
    #[error("{path}{}more than the {most} {what} allowed", if path.is_empty() { "" } else { ": " })]
    TooLarge {
        /// The field of the request; empty for the whole request.
        path: String,
        /// The unit of the limit.
        what: &'static str,
        /// The limit.
        most: usize,
    },
}

impl RequestError {
    /// The offset in the body, if it is a syntax error.
    pub fn offset(&self) -> Option<usize> {
        match self {
            Self::Body { offset, .. } => Some(*offset),
            Self::Mismatch(_) | Self::TooLarge { .. } => None,
        }
    }

    /// Whether a limit is exceeded, which a server may raise.
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::TooLarge { .. })
    }

    /// The error for a body that is too long.
    pub fn body_too_large(limits: &RequestLimits) -> Self {
        Self::TooLarge { path: String::new(), what: "bytes", most: limits.body }
    }
}
