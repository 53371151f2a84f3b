//! Long-running operations, as Azure Resource Manager and others have them: a request is accepted, and another URL tells
//! when it is done.

use std::thread;
use std::time::{Duration, Instant};

use cudock_base::{Secret, text};
use serde_json::Value;
use ureq::http::{Method, Uri};

use crate::client::Client;
use crate::error::{HttpError, HttpErrorKind};
use crate::progress::Progress;
use crate::request::Request;
use crate::response::Response;
use crate::retry::RetryPolicy;
use crate::url::{self, is_same_origin};

/// No description of a resource is larger.
const MAX_BODY: u64 = 4 << 20;

/// Why an operation did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// A request failed.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The operation ended without success.
    #[error("the operation ended as {status}{}{}", part(code.as_deref()), part(message.as_deref()))]
    Failed {
        /// `Failed` or `Canceled`.
        status: String,
        /// The service's code for the reason.
        code: Option<String>,
        /// The service's explanation.
        message: Option<String>,
    },
    /// It is still running.
    #[error("the operation did not end within {} s", .0.as_secs())]
    TimedOut(Duration),
}

fn part(text: Option<&str>) -> String {
    text.map(|text| format!(": {text}")).unwrap_or_default()
}

/// How an operation is awaited.
pub struct Polling<'a> {
    /// Sends the requests.
    pub client: &'a Client,
    /// The `Authorization` header, made anew for each request: a token may expire while the operation runs.
    pub authorization: &'a dyn Fn() -> Result<Option<Secret>, HttpError>,
    /// The delay between requests, unless the service asks for another one.
    pub interval: Duration,
    /// How long to wait in all.
    pub timeout: Duration,
    /// How failed requests are repeated.
    pub retries: RetryPolicy,
    /// Who observes retries.
    pub progress: &'a dyn Progress,
    /// The name under which they are reported.
    pub name: &'a str,
}

/// Which URL tells how far the operation is, and in what form.
#[derive(Debug)]
enum Monitor {
    /// `Azure-AsyncOperation`: a document with `status`.
    Status { url: String, location: Option<String> },
    /// `Location`: 202 until it is done.
    Location(String),
    /// The resource itself, with `properties.provisioningState`.
    Resource,
}

impl Polling<'_> {
    /// Waits until the operation that `response` to `request` began is done. Returns the resource or the result, where the
    /// service has one.
    pub fn wait(&self, request: &Request, response: Response) -> Result<Option<Value>, OperationError> {
        let deadline = Instant::now() + self.timeout;
        let mut response = response.error_for_status()?;
        let delay = response.retry_after();
        let Some(mut monitor) = Monitor::of(&response) else {
            let body = read_body(&mut response)?;
            return match provisioning_state(body.as_ref()) {
                Some(state) if !is_terminal(state) => {
                    self.poll(request, &mut Monitor::Resource, delay, deadline)
                }
                Some(state) if !is_success(state) => Err(failure(state, body.as_ref())),
                _ => Ok(body),
            };
        };
        // The body describes the operation's start, and the connection can be used again once it is read.
        drop(read_body(&mut response));
        self.poll(request, &mut monitor, delay, deadline)
    }

    fn poll(
        &self,
        request: &Request,
        monitor: &mut Monitor,
        mut delay: Option<Duration>,
        deadline: Instant,
    ) -> Result<Option<Value>, OperationError> {
        loop {
            let wait = delay.unwrap_or(self.interval);
            if Instant::now() + wait > deadline {
                return Err(OperationError::TimedOut(self.timeout));
            }
            thread::sleep(wait);
            let url = match monitor {
                Monitor::Status { url, .. } | Monitor::Location(url) => url.as_str(),
                Monitor::Resource => request.url(),
            };
            let (mut response, body) = self.get(request, url)?;
            delay = response.retry_after();
            match monitor {
                Monitor::Status { .. } => {
                    let state =
                        body.as_ref().and_then(|body| body.get("status")?.as_str()).ok_or_else(|| {
                            HttpError::new(HttpErrorKind::Malformed, "the operation has no status")
                        })?;
                    if is_success(state) {
                        return self.result(request, monitor);
                    } else if is_terminal(state) {
                        return Err(failure(state, body.as_ref()));
                    }
                }
                Monitor::Location(_) if response.status() == 202 => {}
                Monitor::Location(_) => return Ok(body),
                Monitor::Resource => match provisioning_state(body.as_ref()) {
                    Some(state) if !is_terminal(state) => {}
                    Some(state) if !is_success(state) => return Err(failure(state, body.as_ref())),
                    _ => return Ok(body),
                },
            }
            monitor.update(&mut response);
        }
    }

    /// The result of an operation whose status is known: what a PUT or PATCH made, or what a POST points to.
    fn result(&self, request: &Request, monitor: &Monitor) -> Result<Option<Value>, OperationError> {
        let url = match (&request.method, monitor) {
            (&Method::PUT | &Method::PATCH, _) => request.url(),
            (&Method::POST, Monitor::Status { location: Some(location), .. }) => location,
            _ => return Ok(None),
        };
        Ok(self.get(request, url)?.1)
    }

    fn get(&self, request: &Request, url: &str) -> Result<(Response, Option<Value>), HttpError> {
        let (first, target): (Uri, Uri) = (url::parse(request.url())?, url::parse(url)?);
        if !is_same_origin(&first, &target) {
            // The authorization is for the first host only, and without it no other one would answer.
            return Err(HttpError::refused("refused to follow the operation to another host"));
        }
        self.retries.run(self.progress, self.name, || {
            let request = Request::get(url).authorization((self.authorization)()?);
            let mut response = self.client.send(&request)?.error_for_status()?;
            let body = read_body(&mut response)?;
            Ok((response, body))
        })
    }
}

impl Monitor {
    fn of(response: &Response) -> Option<Self> {
        let location = response.linked_url("location");
        match response.linked_url("azure-asyncoperation") {
            Some(url) => Some(Self::Status { url, location }),
            // Location of 201 is that of the new resource.
            None if response.status() == 202 => location.map(Self::Location),
            None => None,
        }
    }

    /// A service may move the operation to another URL.
    fn update(&mut self, response: &mut Response) {
        match self {
            Self::Status { url, location } => {
                if let Some(next) = response.linked_url("azure-asyncoperation") {
                    *url = next;
                }
                *location = response.linked_url("location").or(location.take());
            }
            Self::Location(url) => {
                if let Some(next) = response.linked_url("location") {
                    *url = next;
                }
            }
            Self::Resource => {}
        }
    }
}

fn read_body(response: &mut Response) -> Result<Option<Value>, HttpError> {
    let bytes = response.bytes(MAX_BODY)?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    // A body that is not JSON belongs to no resource.
    match serde_json::from_slice(&bytes) {
        Err(error) if error.is_eof() => {
            Err(HttpError::new(HttpErrorKind::Transient, "the response ends early"))
        }
        result => Ok(result.ok()),
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

fn failure(state: &str, body: Option<&Value>) -> OperationError {
    let error = body.and_then(|body| body.get("error").or_else(|| body.get("properties")?.get("error")));
    let field = |name: &str| Some(text::truncate(error?.get(name)?.as_str()?, 300));
    OperationError::Failed {
        status: text::truncate(state, 40),
        code: field("code"),
        message: field("message"),
    }
}
