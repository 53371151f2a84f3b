//! Errors of requests.

use std::time::Duration;

use cudock_inputs::InputError;
use cudock_server::{HttpRejection, WorkerLost};
use cudock_tensor::{RequestError, ResponseError};

/// The reason why a request failed. Its message is sent to the client.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// The request is rejected before it is read, or for lack of resources.
    #[error(transparent)]
    Rejected(#[from] HttpRejection),
    #[error("model `{name}` not found{}", suggestion.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    ModelNotFound {
        name: String,
        /// A model with a similar name.
        suggestion: Option<String>,
    },
    #[error("version `{version}` of model `{name}` not found")]
    VersionNotFound { name: String, version: String },
    /// Several models are served and the request does not name one.
    #[error("several models are served; name one: /predict/NAME with one of {0}")]
    AmbiguousModel(String),
    /// The model cannot run requests at the moment.
    #[error("model `{name}` is not ready: {reason}")]
    NotReady { name: String, reason: String },
    /// The model is not loaded, and a request cannot load it at the moment.
    #[error("model `{name}` is not loaded: {reason}")]
    NotLoaded {
        name: String,
        reason: String,
        /// When a request may load it, if that is known.
        retry_after: Option<Duration>,
    },
    #[error("model `{0}` is kept loaded and cannot be unloaded")]
    KeptLoaded(String),
    /// The model may only run on a GPU, and none can be used.
    #[error("model `{name}` is not ready: a GPU is required and not used: {reason}")]
    NoGpu { name: String, reason: String },
    #[error(transparent)]
    RequestError(#[from] RequestError),
    /// An image or text that cannot be used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The response cannot be written in the requested format.
    #[error(transparent)]
    ResponseError(#[from] ResponseError),
    /// None of the response types that the client accepts is supported.
    #[error("{0}")]
    NotAcceptable(String),
    /// The client's deadline has passed, or will pass before the response.
    #[error("deadline exceeded")]
    DeadlineExceeded,
    #[error("{0}")]
    Engine(String),
    /// The request does not fit into the device's memory, not even row by row.
    #[error("one row of the request needs more memory than the device has free: {0}")]
    DeviceMemory(String),
    #[error("the server is shutting down")]
    Draining,
    #[error("{0}")]
    NotFound(String),
    #[error("method not allowed: {path} supports {allowed}")]
    MethodNotAllowed { path: String, allowed: &'static str },
    /// A model could not be reloaded; the previous one stays.
    #[error("cannot reload `{name}`, still serving the previous model: {reason}")]
    Reload { name: String, reason: String },
    #[error("cannot load `{name}`: {reason}")]
    LoadFailed { name: String, reason: String },
}

impl ServeError {
    /// Time after which a retry may succeed, if waiting helps.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Rejected(rejection) => rejection.retry_after(),
            Self::NotLoaded { retry_after, .. } => *retry_after,
            Self::NotReady { .. } | Self::NoGpu { .. } | Self::Draining => Some(Duration::from_secs(1)),
            _ => None,
        }
    }
}

impl From<WorkerLost> for ServeError {
    fn from(error: WorkerLost) -> Self {
        Self::Rejected(error.into())
    }
}
