//! One request and its response: authorization, retries and throttling.

use std::time::{Duration, Instant};

use cudock_base::{Secret, lock};
use cudock_http::{HttpError, Method, Request, bearer_authorization, sleep_unless};

use super::response::Received;
use super::{AzureClient, StepObserver};
use crate::call::{Call, Plane};
use crate::error::{AzureError, Cause, ServiceError};
use crate::guid;

/// Shorter parts of a URL are not secret.
const MIN_SIGNATURE: usize = 20;

/// A request as it is sent.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) plane: Plane,
    /// The method and path of the call that it belongs to, for messages.
    pub(super) action: String,
    body: Option<Vec<u8>>,
    /// The secrets in the body.
    secrets: Vec<Secret>,
    /// Whether it may be sent again after a response was lost.
    is_repeatable: bool,
    /// The scope of throttling.
    throttle_key: String,
}

impl Outgoing {
    pub(super) fn new(client: &AzureClient, call: &Call) -> Result<Self, AzureError> {
        let path = call.path.split('?').next().unwrap_or_default();
        let action = format!("{} {}", call.method, cudock_base::text::truncate(path, 300));
        let url = client.state.cloud.url(call);
        let url = url.ok_or_else(|| AzureError::InvalidCall { action: action.clone() })?;
        let body = call.body.as_ref().map(|body| body.expose().to_string().into_bytes());
        let secrets =
            call.body.iter().flat_map(|body| body.secrets().map(|(_, secret)| secret.clone())).collect();
        Ok(Self {
            method: call.method.clone(),
            url,
            plane: call.plane.clone(),
            action,
            body,
            secrets,
            is_repeatable: call.is_repeatable(),
            throttle_key: throttle_key(&call.plane, path),
        })
    }

    /// A GET that belongs to this request, such as a poll.
    pub(super) fn get(&self, url: &str) -> Self {
        Self {
            method: Method::GET,
            url: url.to_owned(),
            body: None,
            secrets: signatures(url),
            is_repeatable: true,
            ..self.clone()
        }
    }

    pub(super) fn with_body(self, body: &serde_json::Value) -> Self {
        Self { body: Some(body.to_string().into_bytes()), ..self }
    }

    /// Secrets that must not appear in messages.
    pub(super) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    pub(super) fn is_same_request(&self, other: &Self) -> bool {
        (&self.method, &self.url, &self.body) == (&other.method, &other.url, &other.body)
    }

    fn http_error(&self, error: HttpError) -> AzureError {
        AzureError::Http { action: self.action.clone(), error }
    }

    pub(super) fn canceled(&self) -> AzureError {
        AzureError::Canceled { action: self.action.clone() }
    }
}

/// The parts of a URL's query that may be signatures.
fn signatures(url: &str) -> Vec<Secret> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let values = query.split('&').filter_map(|field| Some(field.split_once('=')?.1));
    values.filter(|value| value.len() >= MIN_SIGNATURE).map(Secret::new).collect()
}

/// The provider of a subscription, or the account of a data plane: their limits are separate.
fn throttle_key(plane: &Plane, path: &str) -> String {
    match plane {
        Plane::ResourceManager => {
            let path = path.to_ascii_lowercase();
            let provider = path.split("/providers/").nth(1).and_then(|rest| rest.split('/').next());
            let subscription = path.split("/subscriptions/").nth(1).and_then(|rest| rest.split('/').next());
            format!("{}/{}", subscription.unwrap_or_default(), provider.unwrap_or_default())
        }
        Plane::Batch { account, region, .. } => format!("batch/{region}/{account}"),
        Plane::MlHistory { region, .. } => format!("ml/{region}"),
    }
}

/// The time until which a service wants no more requests, and its error.
#[derive(Debug, Clone)]
pub(super) struct Throttle {
    until: Instant,
    error: ServiceError,
}

impl AzureClient {
    /// Sends a request until there is a response, until `deadline`. Errors that cannot change are
    /// returned at once.
    pub(super) fn deliver(
        &self,
        outgoing: &Outgoing,
        deadline: Instant,
        observer: &dyn StepObserver,
    ) -> Result<Received, AzureError> {
        let mut failures = 0;
        let mut is_refreshed = false;
        loop {
            self.await_throttle(outgoing, deadline)?;
            let token = self.token(&outgoing.plane)?;
            let error = match self.exchange(outgoing, &token) {
                Ok(received) => return Ok(received),
                Err(error) => error,
            };
            if error.status() == Some(401) && !is_refreshed {
                is_refreshed = true;
                self.state.sign_in.forget(&self.state.cloud.audience(&outgoing.plane), &token);
                continue;
            }
            let Some(delay) = self.retry_delay(outgoing, &error, failures) else { return Err(error) };
            if Instant::now() + delay > deadline {
                return Err(error);
            }
            observer.retrying(&error, delay);
            if !sleep_unless(&self.canceled, delay) {
                return Err(outgoing.canceled());
            }
            failures += 1;
        }
    }

    /// The delay before another attempt, if one may succeed.
    fn retry_delay(&self, outgoing: &Outgoing, error: &AzureError, failures: u32) -> Option<Duration> {
        let policy = &self.state.settings.retries;
        let has_attempts = outgoing.is_repeatable && failures < policy.max_retries;
        match error {
            // Throttled: the request may be repeated.
            AzureError::Service(error) if matches!(error.cause, Cause::Throttled | Cause::Busy) => {
                // At least the delay that the service requests: an earlier request prolongs the
                // wait.
                Some(error.retry_after.unwrap_or_else(|| policy.delay(failures, None)))
            }
            AzureError::Service(error) if matches!(error.status, 408 | 500..) && has_attempts => {
                Some(error.retry_after.unwrap_or_else(|| policy.delay(failures, None)))
            }
            AzureError::Http { error, .. } if error.is_transient() && has_attempts => {
                Some(policy.delay(failures, error.retry_after))
            }
            _ => None,
        }
    }

    fn exchange(&self, outgoing: &Outgoing, token: &Secret) -> Result<Received, AzureError> {
        let mut request = Request::new(outgoing.method.clone(), outgoing.url.as_str())
            .accept("application/json")
            .header("x-ms-client-request-id", guid::random())
            .authorization(Some(bearer_authorization(token)));
        if let Some(body) = &outgoing.body {
            let media_type = match outgoing.plane {
                Plane::Batch { .. } => "application/json; odata=minimalmetadata",
                _ => "application/json",
            };
            request = request.body(media_type, body.as_slice());
        }
        let received = self
            .state
            .http
            .send(&request)
            .and_then(Received::read)
            .map_err(|error| outgoing.http_error(error))?;
        self.state.clock.observe(received.response.date);
        if (200..300).contains(&received.response.status) {
            return Ok(received);
        }
        Err(self.refusal(outgoing, received, token).into())
    }

    fn refusal(&self, outgoing: &Outgoing, received: Received, token: &Secret) -> ServiceError {
        let Received { response, operation } = received;
        let secrets = outgoing.secrets.iter().chain([token]);
        let error = ServiceError {
            request_id: response.request_id,
            date: response.date,
            retry_after: operation.retry_after,
            ..ServiceError::new(&outgoing.action, response.status, &response.body, secrets)
        };
        if let (Cause::Throttled, Some(wait)) = (error.cause, error.retry_after) {
            let throttle = Throttle { until: Instant::now() + wait, error: error.clone() };
            lock(&self.state.throttles).insert(outgoing.throttle_key.clone(), throttle);
        }
        error
    }

    /// Waits as long as a service wanted no more requests of this kind, of whatever thread.
    fn await_throttle(&self, outgoing: &Outgoing, deadline: Instant) -> Result<(), AzureError> {
        let throttle = lock(&self.state.throttles).get(&outgoing.throttle_key).cloned();
        let wait = throttle.as_ref().map(|throttle| throttle.until.saturating_duration_since(Instant::now()));
        match throttle {
            Some(throttle) if throttle.until > deadline => Err(throttle.error.into()),
            _ if sleep_unless(&self.canceled, wait.unwrap_or_default()) => Ok(()),
            _ => Err(outgoing.canceled()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_a_provider_in_a_subscription() {
        for (path, key) in [
            (
                "/subscriptions/S/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v",
                "s/microsoft.compute",
            ),
            ("/subscriptions/S/resourceGroups/g", "s/"),
            ("/providers/Microsoft.ResourceGraph/resources", "/microsoft.resourcegraph"),
        ] {
            assert_eq!(throttle_key(&Plane::ResourceManager, path), key);
        }
    }
}
