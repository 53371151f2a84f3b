//! Steps: a request, and the wait for its end.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use cudock_http::{HttpError, Method, Operation, OperationError, OperationResponse, Polling, sleep_unless};
use serde_json::Value;

use super::exchange::Outgoing;
use super::response::{AzureResponse, Received};
use super::{AzureClient, StepObserver};
use crate::deployment::{Step, Wait};
use crate::error::{AzureError, ServiceError};

/// Maximum duration of a step.
const MAX_TIMEOUT: Duration = Duration::from_secs(60 * 24 * 3600);

/// The meaning of an error for a repeated request whose first response was lost, or which an
/// earlier process sent.
enum Settled {
    /// The step has succeeded before.
    Done,
    /// It is in progress; the resource shows when it ends.
    Running,
}

impl AzureClient {
    /// Sends a step's request and waits for its end, within the step's timeout.
    ///
    /// It may be repeated at any time: names are chosen before, so what an earlier attempt made is found. Deleting what does
    /// not exist succeeds.
    pub fn run(&self, step: &Step) -> Result<AzureResponse, AzureError> {
        self.run_observed(step, &())
    }

    /// The same, with an observer of what happens meanwhile.
    pub fn run_observed(
        &self,
        step: &Step,
        observer: &dyn StepObserver,
    ) -> Result<AzureResponse, AzureError> {
        let run = StepRun::new(self, step, observer)?;
        loop {
            let response = match self.deliver(&run.outgoing, run.deadline, observer) {
                Ok(received) if step.wait == Wait::Response => return Ok(received.response),
                Ok(received) => run.wait(received)?,
                Err(error) => match settled(&step.call.method, &error) {
                    Some(Settled::Done) => return Ok(response_of(&error)),
                    Some(Settled::Running) if step.wait == Wait::Response => return Ok(response_of(&error)),
                    Some(Settled::Running) => run.resume(run.of_resource())?,
                    None => return Err(error),
                },
            };
            if step.wait == Wait::Operation {
                return Ok(response);
            }
            // A resource that still exists and is not being deleted has to be deleted again: a
            // resource group can survive half empty.
            let response = run.resume(run.of_resource())?;
            if response.body.is_null() {
                return Ok(response);
            }
            run.sleep(self.state.settings.poll_interval)?;
        }
    }

    /// Waits for the operation of a step that an earlier process began and stored.
    pub fn resume(
        &self,
        step: &Step,
        operation: Operation,
        observer: &dyn StepObserver,
    ) -> Result<AzureResponse, AzureError> {
        let run = StepRun::new(self, step, observer)?;
        let is_own = operation.resource() == run.outgoing.url;
        match step.wait {
            Wait::Operation if is_own => run.resume(operation),
            // A deletion is repeated, and so is what was stored for another cloud.
            _ if step.call.is_repeatable() => self.run_observed(step, observer),
            _ => Err(AzureError::InvalidCall { action: run.outgoing.action }),
        }
    }
}

/// Whether an error means that a repeated request was carried out before.
fn settled(method: &Method, error: &AzureError) -> Option<Settled> {
    match *method {
        Method::DELETE if error.is_not_found() => Some(Settled::Done),
        Method::DELETE
            if error.has_code(&["PoolBeingDeleted", "JobBeingDeleted", "ResourceGroupBeingDeleted"]) =>
        {
            Some(Settled::Running)
        }
        Method::PUT if error.has_code(&["DeploymentActive"]) => Some(Settled::Running),
        Method::POST if error.has_code(&["PoolExists", "JobExists", "TaskExists"]) => Some(Settled::Done),
        _ => None,
    }
}

fn response_of(error: &AzureError) -> AzureResponse {
    match error.service() {
        Some(ServiceError { status, date, request_id, .. }) => AzureResponse {
            status: *status,
            date: *date,
            request_id: request_id.clone(),
            ..AzureResponse::default()
        },
        None => AzureResponse::default(),
    }
}

struct StepRun<'a> {
    client: &'a AzureClient,
    observer: &'a dyn StepObserver,
    outgoing: Outgoing,
    timeout: Duration,
    deadline: Instant,
}

impl<'a> StepRun<'a> {
    fn new(client: &'a AzureClient, step: &Step, observer: &'a dyn StepObserver) -> Result<Self, AzureError> {
        let timeout = step.timeout.min(MAX_TIMEOUT);
        let (outgoing, deadline) = (Outgoing::new(client, &step.call)?, Instant::now() + timeout);
        Ok(Self { client, observer, outgoing, timeout, deadline })
    }

    fn of_resource(&self) -> Operation {
        Operation::of_resource(&self.outgoing.method, self.outgoing.url.as_str())
    }

    fn timed_out(&self) -> AzureError {
        AzureError::TimedOut { action: self.outgoing.action.clone(), after: self.timeout }
    }

    fn sleep(&self, time: Duration) -> Result<(), AzureError> {
        if Instant::now() + time > self.deadline {
            return Err(self.timed_out());
        }
        if sleep_unless(&self.client.canceled, time) { Ok(()) } else { Err(self.outgoing.canceled()) }
    }

    fn wait(&self, received: Received) -> Result<AzureResponse, AzureError> {
        let first = received.response.without_body();
        let operation = received.into_operation();
        self.poll(first, |polling| polling.wait(&self.outgoing.method, &self.outgoing.url, operation))
    }

    fn resume(&self, operation: Operation) -> Result<AzureResponse, AzureError> {
        self.poll(AzureResponse::default(), |polling| polling.resume(operation))
    }

    /// Polls with `how`. The returned response has the result as its body; the rest is that of the
    /// last poll.
    fn poll(
        &self,
        first: AzureResponse,
        how: impl FnOnce(&Polling<'_, AzureError>) -> Result<Option<Value>, OperationError<AzureError>>,
    ) -> Result<AzureResponse, AzureError> {
        let last = RefCell::new(first);
        let get = |url: &str| -> Result<OperationResponse, AzureError> {
            let received = self.client.deliver(&self.outgoing.get(url), self.deadline, self.observer);
            *last.borrow_mut() = match &received {
                Ok(received) => received.response.without_body(),
                Err(error) => response_of(error),
            };
            let received = received?;
            let operation = received.into_operation();
            if let Some(state) = operation.body.as_ref().and_then(state) {
                self.observer.state(state);
            }
            Ok(operation)
        };
        let result = how(&Polling {
            get: &get,
            is_gone: &AzureError::is_not_found,
            interval: self.client.state.settings.poll_interval,
            timeout: self.deadline.saturating_duration_since(Instant::now()),
            canceled: &self.client.canceled,
            on_poll: &|operation| self.observer.polling(operation),
        });
        let last = last.into_inner();
        match result {
            Ok(body) => Ok(AzureResponse { body: body.unwrap_or_default(), ..last }),
            Err(OperationError::Request(error)) => Err(error),
            Err(OperationError::Protocol(error)) => Err(self.protocol_error(error)),
            Err(OperationError::Failed { status, error }) => Err(self.failure(&status, error, last)),
            Err(OperationError::TimedOut(_)) => Err(self.timed_out()),
            Err(OperationError::Canceled) => Err(self.outgoing.canceled()),
        }
    }

    fn protocol_error(&self, error: HttpError) -> AzureError {
        AzureError::Http { action: self.outgoing.action.clone(), error }
    }

    fn failure(&self, state: &str, error: Option<Value>, last: AzureResponse) -> AzureError {
        let body = error.unwrap_or_default();
        let error = ServiceError::new(&self.outgoing.action, last.status, &body, self.outgoing.secrets());
        let message = error.message.or_else(|| Some(format!("the operation ended as {state}")));
        ServiceError { message, request_id: last.request_id, ..error }.into()
    }
}

/// The progress according to a poll.
fn state(body: &Value) -> Option<&str> {
    body.get("status").or_else(|| body.get("properties")?.get("provisioningState"))?.as_str()
}
