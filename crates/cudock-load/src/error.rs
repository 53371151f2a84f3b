//! Why no load could be put on a server.

use std::io;

use cudock_base::UsageError;

use crate::response::BadResponse;

/// Why no load could be put on a server.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The user's arguments cannot be used.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// An address that is not `http://host:port/path`.
    #[error("`{url}` is no address of a server: {reason}")]
    Url {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The name of the server stands for no address.
    #[error("`{name}` cannot be resolved")]
    Name {
        /// The name.
        name: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Nobody takes connections there.
    #[error("cannot connect to {place}")]
    Connect {
        /// Host and port.
        place: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A connection broke during a single request.
    #[error("{place} did not answer {path}")]
    Exchange {
        /// Host and port.
        place: String,
        /// What was asked for.
        path: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The answer to a single request is not HTTP.
    #[error("{place} gave no answer to {path} that can be read")]
    Response {
        /// Host and port.
        place: String,
        /// What was asked for.
        path: String,
        /// What is wrong with it.
        #[source]
        source: BadResponse,
    },
    /// The server did not take a request that the load is to be made of.
    #[error("the server refused the first request to {path}: {status} {message}")]
    Refused {
        /// Where the request went.
        path: String,
        /// The status of the answer.
        status: u16,
        /// What the answer says.
        message: String,
    },
    /// What the server says of a model cannot be read.
    #[error("what the server says of its model cannot be read: {0}")]
    Metadata(String),
    /// Bodies cannot be made.
    #[error("{0}")]
    Payload(String),
    /// The machine refused something the generator needs.
    #[error("cannot {what}")]
    Machine {
        /// What it needs.
        what: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A thread of the generator ended early.
    #[error("a thread of the load generator ended before its time")]
    Thread,
}

impl LoadError {
    pub(crate) fn machine(what: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::Machine { what, source: errno.into() }
    }
}
