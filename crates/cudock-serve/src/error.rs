//! Why a request was not answered.

use std::time::Duration;

use cudock_tensor::{Malformed, Unwritable};

/// Why a request was not answered. Its words go to the client.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServeError {
    /// No model has that name.
    #[error("no model `{name}`{}", suggestion.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    NoModel {
        /// The name asked for.
        name: String,
        /// A model with a similar name.
        suggestion: Option<String>,
    },
    /// The model has no such version.
    #[error("model `{name}` has no version `{version}`")]
    NoVersion {
        /// The model.
        name: String,
        /// The version asked for.
        version: String,
    },
    /// Several models are served and the request names none.
    #[error("several models are served; name one: /predict/NAME with one of {0}")]
    WhichModel(String),
    /// The model cannot be used at present.
    #[error("model `{name}` is not ready: {reason}")]
    NotReady {
        /// The model.
        name: String,
        /// Why not.
        reason: String,
    },
    /// The request is not what the model takes.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The answer cannot be written as the client wants it.
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    /// The request is not what the protocol allows.
    #[error("{0}")]
    BadRequest(String),
    /// The body is of a kind nobody reads.
    #[error("{0}")]
    UnsupportedMediaType(String),
    /// The client takes no answer that anybody writes.
    #[error("{0}")]
    NotAcceptable(String),
    /// The body is larger than is taken.
    #[error("the body is larger than {limit} bytes")]
    BodyTooLarge {
        /// The most that is taken.
        limit: usize,
    },
    /// The request and what is made of it are more than the server may ever hold.
    #[error("the request needs {needed} bytes of memory, more than the server may hold ({limit})")]
    OverBudget {
        /// What it needs.
        needed: usize,
        /// The server's budget.
        limit: usize,
    },
    /// The body did not come in time.
    #[error("the body did not arrive in time")]
    BodyTooSlow,
    /// More rows than may wait.
    #[error("too many requests are waiting; try again in {} ms", retry_after.as_millis())]
    Full {
        /// When it makes sense to try again.
        retry_after: Duration,
    },
    /// The request holds more rows than the server takes at once.
    #[error("a request may have {max} rows at most, not {rows}")]
    TooManyRows {
        /// Rows of the request.
        rows: usize,
        /// Most that are taken.
        max: usize,
    },
    /// The time the client gave is over, or would be before the answer.
    #[error("the time given for the request is over")]
    Late,
    /// No key, or a wrong one.
    #[error("this server wants a key: send `Authorization: Bearer KEY` or `X-API-Key: KEY`")]
    Unauthorized,
    /// The engine could not run the request.
    #[error("{0}")]
    Engine(String),
    /// The server is about to end.
    #[error("the server is shutting down")]
    Draining,
    /// What was asked for is not there.
    #[error("{0}")]
    NotFound(String),
    /// The path is known, the method is not.
    #[error("{path} takes {allowed}")]
    MethodNotAllowed {
        /// The path.
        path: String,
        /// What it takes.
        allowed: &'static str,
    },
    /// A model could not be loaded again; the one before goes on.
    #[error("cannot reload `{name}`, the model before goes on: {reason}")]
    Reload {
        /// The model.
        name: String,
        /// Why not.
        reason: String,
    },
}

impl ServeError {
    /// When it makes sense to try again, if waiting helps.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Full { retry_after } => Some(*retry_after),
            Self::NotReady { .. } | Self::Draining => Some(Duration::from_secs(1)),
            _ => None,
        }
    }
}
