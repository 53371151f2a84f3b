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
        offset: usize,
        message: String,
    },
    #[error("{0}")]
    Mismatch(String),
    #[error("{path}{}more than the {most} {what} allowed", if path.is_empty() { "" } else { ": " })]
    TooLarge {
        /// The field of the request; empty for the whole request.
        path: String,
        /// The unit of the limit.
        what: &'static str,
        most: usize,
    },
}

impl RequestLimits {
    pub(crate) fn check_body(&self, body: &[u8]) -> Result<(), RequestError> {
        if body.len() > self.body {
            return Err(RequestError::TooLarge { path: String::new(), what: "bytes", most: self.body });
        }
        Ok(())
    }
}
