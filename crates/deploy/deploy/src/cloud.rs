//! The interface of a cloud, as this crate uses it.

use std::time::Duration;

use cudock_azure::{AzureClient, AzureError, AzureResponse, Call, Step, Terminal};
use cudock_base::{ErrorKind, Report, Secret, Timestamp};
use cudock_http::WebSocket;
use serde_json::Value;

/// A cloud that carries out requests. Methods block, and several threads may call them.
pub trait CloudApi: Sync {
    /// Carries out a step and waits for its end. Deleting what does not exist succeeds.
    fn run(&self, step: &Step) -> Result<ApiReply, ApiError>;

    /// Sends a request.
    fn send(&self, call: &Call) -> Result<ApiReply, ApiError>;

    /// The items of all pages.
    fn list(&self, call: &Call) -> Result<Vec<Value>, ApiError>;

    /// The text at an address that a response named, with the token that came with it, if any.
    fn download(&self, address: &Secret, token: Option<&Secret>) -> Result<String, ApiError>;

    /// The web socket of a terminal that a response named.
    fn connect(&self, terminal: &Terminal) -> Result<WebSocket, ApiError>;

    /// The time by the cloud's clock, as far as it is known: that of this machine may be wrong.
    fn now(&self) -> Timestamp;
}

/// The response of a cloud.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApiReply {
    /// The JSON body; a text that is not JSON is a string.
    pub body: Value,
    /// The delay before the next request that the service wants.
    pub retry_after: Option<Duration>,
}

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub message: String,
    pub hints: Vec<String>,
    pub kind: ErrorKind,
    pub reason: ApiErrorReason,
}

/// The consequence of a failed request for the deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiErrorReason {
    /// The resource does not exist.
    NotFound,
    /// The user ended the command.
    Interrupted,
    /// No quota or no capacity here; another size, region or priority may have some.
    NoCapacity,
    /// The service does not do it in the present state.
    Refused,
    /// The network or the service.
    Outside,
}

impl ApiError {
    pub fn new(reason: ApiErrorReason, message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new(), kind: ErrorKind::Outside, reason }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.reason == ApiErrorReason::NotFound
    }
}

impl Report for ApiError {
    fn kind(&self) -> ErrorKind {
        self.kind
    }

    fn hints(&self) -> Vec<String> {
        self.hints.clone()
    }
}

impl CloudApi for AzureClient {
    fn run(&self, step: &Step) -> Result<ApiReply, ApiError> {
        Ok(AzureClient::run(self, step)?.into())
    }

    fn send(&self, call: &Call) -> Result<ApiReply, ApiError> {
        Ok(AzureClient::send(self, call)?.into())
    }

    fn list(&self, call: &Call) -> Result<Vec<Value>, ApiError> {
        Ok(AzureClient::list(self, call)?)
    }

    fn download(&self, address: &Secret, token: Option<&Secret>) -> Result<String, ApiError> {
        Ok(AzureClient::download(self, address, token)?)
    }

    fn connect(&self, terminal: &Terminal) -> Result<WebSocket, ApiError> {
        Ok(AzureClient::connect(self, terminal)?)
    }

    fn now(&self) -> Timestamp {
        AzureClient::now(self)
    }
}

impl From<AzureResponse> for ApiReply {
    fn from(response: AzureResponse) -> Self {
        Self { body: response.body, retry_after: response.retry_after }
    }
}

impl From<AzureError> for ApiError {
    fn from(error: AzureError) -> Self {
        let reason = match &error {
            error if error.is_not_found() => ApiErrorReason::NotFound,
            AzureError::Canceled { .. } => ApiErrorReason::Interrupted,
            error if error.cause().is_placement() => ApiErrorReason::NoCapacity,
            error if matches!(error.status(), Some(400 | 409)) => ApiErrorReason::Refused,
            _ => ApiErrorReason::Outside,
        };
        Self { message: error.to_string(), hints: error.hints(), kind: error.kind(), reason }
    }
}
