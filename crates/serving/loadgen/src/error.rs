//! Errors of the load generator.

use std::io;

use cudock_base::{ErrorKind, Report, UsageError};

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

impl Report for LoadError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Usage(error) => error.kind(),
            Self::Url { .. } | Self::Refused { status: 400..500, .. } | Self::Payload(_) => ErrorKind::Input,
            Self::Name { .. }
            | Self::Connect { .. }
            | Self::Exchange { .. }
            | Self::Response { .. }
            | Self::Refused { .. }
            | Self::Metadata(_)
            | Self::Machine { .. }
            | Self::Thread => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Usage(error) => return error.hints(),
            Self::Url { .. } => "write it as http://localhost:8000",
            Self::Name { .. } | Self::Connect { .. } => {
                "start a server first: `cudock serve MODEL`; or correct the URL"
            }
            Self::Refused { status: 404, .. } => {
                "add the path to the URL, or pass another --protocol or --model-name"
            }
            Self::Refused { status: 401 | 403, .. } => {
                "pass the credentials, as --header 'Authorization: Bearer KEY'"
            }
            Self::Refused { status: 400..500, .. } => {
                "pass the model's input with --shape and --dtype, or a request with --body FILE"
            }
            Self::Payload(_) => "pass the shape of one row, as --shape 3,224,224",
            _ => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}
