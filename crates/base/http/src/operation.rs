//! Long-running operations, as in Azure Resource Manager and others: a request is accepted, and
//! another URL reports when it is done.
//!
//! Only the protocol is here. How a URL is requested (authorization, retries, limits) is the caller's own, so that a poll
//! is treated like any other request.

use std::fmt::{self, Display};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use cudock_base::{Secret, text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ureq::http::{Method, Uri};

use crate::error::{HttpError, HttpErrorKind};
use crate::response::Response;
use crate::retry::sleep_unless;
use crate::url::{self, is_same_origin};

/// Why an operation did not succeed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OperationError<E: Display> {
    /// A request failed.
    #[error("{0}")]
    Request(E),
    /// A response breaks the protocol.
    #[error(transparent)]
    Protocol(HttpError),
    /// The operation ended without success.
    #[error("the operation ended as {status}")]
    Failed {
        /// `Failed` or `Canceled`.
        status: String,
        /// The service's description of the error.
        error: Option<Value>,
    },
    /// It is still running.
    #[error("the operation did not end within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The caller stopped waiting. The operation continues.
    #[error("canceled")]
    Canceled,
}

/// How an operation is awaited.
pub struct Polling<'a, E> {
    /// Sends a GET request to a URL, with authorization and retries.
    pub get: &'a dyn Fn(&str) -> Result<OperationResponse, E>,
    /// Whether an error means that the resource at the URL does not exist.
    pub is_gone: &'a dyn Fn(&E) -> bool,
    /// The delay between requests, unless the service requests another one.
    pub interval: Duration,
    /// How long to wait in all.
    pub timeout: Duration,
    pub canceled: &'a AtomicBool,
    /// Receives the operation before each request, to keep it for [`resume`](Self::resume).
    pub on_poll: &'a dyn Fn(&Operation),
}

/// The parts of a response that describe an operation.
#[derive(Clone, PartialEq)]
pub struct OperationResponse {
    pub status: u16,
    /// Absent if it is empty or not JSON.
    pub body: Option<Value>,
    pub retry_after: Option<Duration>,
    /// `Azure-AsyncOperation`, made absolute.
    pub operation: Option<String>,
    /// `Location`, made absolute.
    pub location: Option<String>,
}

impl OperationResponse {
    /// The parts of a response that matter, with its body, which the caller has read.
    pub fn new(response: &Response, body: Option<Value>) -> Self {
        Self {
            status: response.status(),
            body,
            retry_after: response.retry_after(),
            operation: response.linked_url("azure-asyncoperation"),
            location: response.linked_url("location"),
        }
    }
}

/// A running operation. Another process can store it and wait for it. Its URL is signed, and gives
/// access to the operation, so it is not printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The method of the request that began it.
    method: String,
    /// The URL of that request.
    resource: String,
    monitor: Monitor,
}

/// The URL that reports the operation's progress, and its format.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Monitor {
    /// `Azure-AsyncOperation`: a document with `status`.
    Status { url: String, location: Option<String> },
    /// `Location`: 202 until it is done.
    Location { url: String },
    /// The resource itself: its `properties.provisioningState`, or for a deletion whether it exists.
    Resource,
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation({})", self.method)
    }
}

impl Operation {
    /// An operation that is observed only through its resource, because no other URL is known.
    pub fn of_resource(method: &Method, url: impl Into<String>) -> Self {
        Self { method: method.to_string(), resource: url.into(), monitor: Monitor::Resource }
    }

    /// The operation that the response to this request began, if another URL reports on it.
    fn begun(method: &Method, url: &str, response: &OperationResponse) -> Option<Self> {
        let location = response.location.clone();
        let monitor = match response.operation.clone() {
            Some(url) => Monitor::Status { url, location },
            // Location of 201 is that of the new resource.
            None if response.status == 202 => Monitor::Location { url: location? },
            None => return None,
        };
        Some(Self { monitor, ..Self::of_resource(method, url) })
    }

    /// The URL of the request that began it.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The operation as text, to be stored.
    pub fn to_secret(&self) -> Secret {
        Secret::new(serde_json::to_string(self).unwrap_or_default())
    }

    /// The operation that was stored; `None` if it is not one.
    pub fn from_secret(text: &Secret) -> Option<Self> {
        serde_json::from_str(text.expose()).ok()
    }

    fn url(&self) -> &str {
        match &self.monitor {
            Monitor::Status { url, .. } | Monitor::Location { url } => url,
            Monitor::Resource => &self.resource,
        }
    }

    fn is_deletion(&self) -> bool {
        self.method == Method::DELETE.as_str()
    }

    /// Updates the URL: every response may name another one with a newer signature.
    fn update(&mut self, response: OperationResponse) {
        match &mut self.monitor {
            Monitor::Status { url, location } => {
                if let Some(next) = response.operation {
                    *url = next;
                }
                *location = response.location.or(location.take());
            }
            Monitor::Location { url } => {
                if let Some(next) = response.location {
                    *url = next;
                }
            }
            Monitor::Resource => {}
        }
    }
}

/// The meaning of a response to a poll.
enum PollOutcome {
    Running,
    /// The operation succeeded; its result is at another URL, if anywhere.
    Succeeded,
    /// It ended, with this result.
    Ended(Option<Value>),
}

impl<E: Display> Polling<'_, E> {
    /// Waits until the operation that `response` to this request began is done. Returns the resource or the result, where
    /// the service has one.
    pub fn wait(
        &self,
        method: &Method,
        url: &str,
        response: OperationResponse,
    ) -> Result<Option<Value>, OperationError<E>> {
        let delay = response.retry_after;
        if let Some(operation) = Operation::begun(method, url, &response) {
            return self.poll(operation, delay);
        }
        match provisioning_state(response.body.as_ref()) {
            Some(state) if !is_terminal(state) => self.poll(Operation::of_resource(method, url), delay),
            // A deleted resource may have failed before.
            Some(state) if !is_success(state) && *method != Method::DELETE => {
                Err(failure(state, response.body.as_ref()))
            }
            _ => Ok(response.body),
        }
    }

    /// Waits for an operation that began earlier. If the service has forgotten it, its resource is
    /// read.
    ///
    /// A deletion that is observed by its resource is done when this does not exist. If it exists and is not being deleted,
    /// it is returned.
    pub fn resume(&self, operation: Operation) -> Result<Option<Value>, OperationError<E>> {
        self.poll(operation, Some(Duration::ZERO))
    }

    fn poll(
        &self,
        mut operation: Operation,
        mut delay: Option<Duration>,
    ) -> Result<Option<Value>, OperationError<E>> {
        let deadline = Instant::now() + self.timeout;
        loop {
            (self.on_poll)(&operation);
            let wait = delay.unwrap_or(self.interval);
            if Instant::now() + wait > deadline {
                return Err(OperationError::TimedOut(self.timeout));
            }
            if !sleep_unless(self.canceled, wait) {
                return Err(OperationError::Canceled);
            }
            let response = match self.get(&operation, operation.url()) {
                Err(OperationError::Request(error)) if (self.is_gone)(&error) => {
                    if operation.monitor == Monitor::Resource && operation.is_deletion() {
                        return Ok(None);
                    }
                    // A resource alone does not show whether a POST has succeeded.
                    let is_lost = operation.monitor == Monitor::Resource || operation.method == "POST";
                    if is_lost {
                        return Err(OperationError::Request(error));
                    }
                    operation.monitor = Monitor::Resource;
                    delay = Some(Duration::ZERO);
                    continue;
                }
                response => response?,
            };
            delay = response.retry_after;
            match outcome::<E>(&operation, &response)? {
                PollOutcome::Running => operation.update(response),
                PollOutcome::Succeeded => return self.result(&operation),
                PollOutcome::Ended(result) => return Ok(result),
            }
        }
    }

    /// The result of an operation whose status is known: what a PUT or PATCH made, or what a POST points to.
    fn result(&self, operation: &Operation) -> Result<Option<Value>, OperationError<E>> {
        let url = match (operation.method.as_str(), &operation.monitor) {
            ("PUT" | "PATCH", _) => &operation.resource,
            ("POST", Monitor::Status { location: Some(location), .. }) => location,
            _ => return Ok(None),
        };
        match self.get(operation, url) {
            // Not every action that names a URL has a result there.
            Err(OperationError::Request(error)) if operation.method == "POST" && (self.is_gone)(&error) => {
                Ok(None)
            }
            response => Ok(response?.body),
        }
    }

    fn get(&self, operation: &Operation, url: &str) -> Result<OperationResponse, OperationError<E>> {
        let parse = |url: &str| url::parse(url).map_err(OperationError::<E>::Protocol);
        let (first, target): (Uri, Uri) = (parse(&operation.resource)?, parse(url)?);
        if !is_same_origin(&first, &target) {
            // The authorization is for the first host only, and other hosts would refuse a request
            // without one.
            let error = HttpError::refused("refused to follow the operation to another host");
            return Err(OperationError::Protocol(error));
        }
        (self.get)(url).map_err(OperationError::Request)
    }
}

fn outcome<E: Display>(
    operation: &Operation,
    response: &OperationResponse,
) -> Result<PollOutcome, OperationError<E>> {
    let body = response.body.as_ref();
    let ended = || PollOutcome::Ended(response.body.clone());
    match &operation.monitor {
        Monitor::Status { .. } => {
            let state = body.and_then(|body| body.get("status")?.as_str()).ok_or_else(|| {
                let reason = "the operation has no status";
                OperationError::<E>::Protocol(HttpError::new(HttpErrorKind::Malformed, reason))
            })?;
            match state {
                state if is_success(state) => Ok(PollOutcome::Succeeded),
                state if is_terminal(state) => Err(failure(state, body)),
                _ => Ok(PollOutcome::Running),
            }
        }
        Monitor::Location { .. } if response.status == 202 => Ok(PollOutcome::Running),
        Monitor::Location { .. } => Ok(ended()),
        Monitor::Resource => match provisioning_state(body) {
            Some(state) if !is_terminal(state) => Ok(PollOutcome::Running),
            // A resource without a state is being deleted as long as it exists.
            None if operation.is_deletion() => Ok(PollOutcome::Running),
            Some(state) if !is_success(state) && !operation.is_deletion() => Err(failure(state, body)),
            _ => Ok(ended()),
        },
    }
}

fn provisioning_state(body: Option<&Value>) -> Option<&str> {
    body?.get("properties")?.get("provisioningState")?.as_str()
}

fn is_success(state: &str) -> bool {
    state.eq_ignore_ascii_case("Succeeded")
}

fn is_terminal(state: &str) -> bool {
    ["Succeeded", "Failed", "Canceled", "Cancelled"].iter().any(|end| state.eq_ignore_ascii_case(end))
}

fn failure<E: Display>(state: &str, body: Option<&Value>) -> OperationError<E> {
    let error = body.and_then(|body| body.get("error").or_else(|| body.get("properties")?.get("error")));
    OperationError::Failed { status: text::truncate(state, 40), error: error.cloned() }
}
