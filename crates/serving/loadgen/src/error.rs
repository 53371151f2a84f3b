//! Errors of the load generator.

use std::io;

use cudock_base::UsageError;

use crate::client::response::BadResponse;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The user's arguments cannot be used.
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error("invalid server URL `{url}`: {reason}")]
    Url { url: String, reason: &'static str },
    #[error("cannot resolve `{name}`")]
    Name { name: String, source: io::Error },
    #[error("cannot connect to {server}")]
    Connect {
        /// Host and port.
        server: String,
        source: io::Error,
    },
    /// A connection failed during a single request.
    #[error("{server} did not respond to {path}")]
    Exchange { server: String, path: String, source: io::Error },
    /// The response to a single request is not HTTP.
    #[error("invalid response from {server} to {path}")]
    Response { server: String, path: String, source: BadResponse },
    #[error("the server rejected the request to {path}: {status} {message}")]
    Refused { path: String, status: u16, message: String },
    #[error("invalid response: {0}")]
    Metadata(String),
    /// Request bodies cannot be generated.
    #[error("{0}")]
    Payload(String),
    /// A system call of the generator failed.
    #[error("cannot {what}")]
    Machine { what: &'static str, source: io::Error },
    #[error("a thread of the load generator panicked")]
    Thread,
}

impl LoadError {
    pub(crate) fn machine(what: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::Machine { what, source: errno.into() }
    }
}
