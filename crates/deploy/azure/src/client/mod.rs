//! The client: sends requests to the services of a cloud.

mod download;
mod exchange;
mod response;
mod run;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cudock_base::{Environment, Secret, Timestamp};
use cudock_http::url::is_same_origin;
use cudock_http::{Client, ClientOptions, Method, Operation, RetryPolicy, Uri, trusted_certificates};
use serde_json::{Value, json};

use self::exchange::{Outgoing, Throttle};
use crate::auth::{Principal, ServerClock, SignIn, SignInOptions, TokenRequest};
use crate::call::{Body, Call, Plane};
use crate::cloud::Cloud;
use crate::error::AzureError;

pub use self::response::AzureResponse;

/// Maximum number of pages of a list; 1,000 entries each are usual.
const MAX_PAGES: usize = 2000;

/// How the client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientSettings {
    pub retries: RetryPolicy,
    /// The delay between polls, unless the service requests another one.
    pub poll_interval: Duration,
    /// How long [`AzureClient::send`] and [`AzureClient::list`] retry. Steps have their own timeout.
    pub patience: Duration,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            retries: RetryPolicy::default(),
            poll_interval: Duration::from_secs(5),
            patience: Duration::from_secs(120),
        }
    }
}

/// Observes a step while it runs.
pub trait StepObserver {
    /// The operation is polled. Its URL can be stored, to wait for it after a crash.
    fn polling(&self, operation: &Operation) {
        let _ = operation;
    }

    /// The service's name for the state of the operation or resource.
    fn state(&self, state: &str) {
        let _ = state;
    }

    /// An attempt failed and another follows after `delay`.
    fn retrying(&self, error: &AzureError, delay: Duration) {
        let _ = (error, delay);
    }
}

/// Observes nothing.
impl StepObserver for () {}

/// Sends requests to Azure. Clones share their connections and tokens.
#[derive(Clone)]
pub struct AzureClient {
    state: Arc<ClientState>,
    canceled: Arc<AtomicBool>,
}

struct ClientState {
    http: Client,
    cloud: Cloud,
    sign_in: SignIn,
    settings: ClientSettings,
    clock: ServerClock,
    throttles: Mutex<BTreeMap<String, Throttle>>,
}

impl fmt::Debug for AzureClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureClient")
            .field("cloud", &self.state.cloud)
            .field("sign_in", &self.state.sign_in)
            .finish_non_exhaustive()
    }
}

impl AzureClient {
    /// A client for the cloud and sign-in of the environment. Nothing is sent yet.
    pub fn from_environment(
        environment: &Environment,
        sign_in: &SignInOptions,
        settings: ClientSettings,
    ) -> Result<Self, AzureError> {
        let cloud = Cloud::from_environment(environment)?;
        let certificates = trusted_certificates(environment);
        let http = Client::new(&ClientOptions { certificates, ..ClientOptions::default() })?;
        let sign_in = SignIn::from_environment(environment, sign_in)?;
        let (clock, throttles) = (ServerClock::default(), Mutex::default());
        let state = ClientState { http, cloud, sign_in, settings, clock, throttles };
        Ok(Self { state: Arc::new(state), canceled: Arc::default() })
    }

    /// The same client, whose requests and waits end when the flag is set. Operations that have
    /// begun continue in the cloud.
    #[must_use]
    pub fn cancelable_by(&self, canceled: Arc<AtomicBool>) -> Self {
        Self { state: Arc::clone(&self.state), canceled }
    }

    /// The time by the services' clock, as far as a response has shown it: that of this machine may
    /// be wrong.
    pub fn now(&self) -> Timestamp {
        self.state.clock.now()
    }

    pub fn cloud(&self) -> &Cloud {
        &self.state.cloud
    }

    /// How it signs in, for messages.
    pub fn sign_in_method(&self) -> &'static str {
        self.state.sign_in.method()
    }

    /// The signed-in identity.
    pub fn principal(&self) -> Result<Principal, AzureError> {
        let audience = self.state.cloud.audience(&Plane::ResourceManager);
        Ok(self.state.sign_in.principal(&self.token_request(), &audience)?)
    }

    /// The subscription that is set, or az's default, or the only one.
    pub fn subscription(&self) -> Result<String, AzureError> {
        let sign_in = &self.state.sign_in;
        if let Some(subscription) = sign_in.configured_subscription() {
            return Ok(subscription.to_owned());
        }
        // Which way to sign in works is known with the first token.
        self.token(&Plane::ResourceManager)?;
        if let Some(subscription) = sign_in.cli_subscription() {
            return Ok(subscription?);
        }
        let path = "/subscriptions?api-version=2022-12-01".to_owned();
        let call = Call { method: Method::GET, plane: Plane::ResourceManager, path, body: None };
        let id = |entry: &Value| {
            let is_enabled = entry.get("state").and_then(Value::as_str) == Some("Enabled");
            is_enabled.then(|| entry.get("subscriptionId")?.as_str().map(str::to_owned)).flatten()
        };
        let mut names: Vec<String> = self.list(&call)?.iter().filter_map(id).collect();
        match names.len() {
            1 => Ok(names.remove(0)),
            _ => Err(AzureError::Subscription { names }),
        }
    }

    /// Sends a request. Throttling and lost responses are retried; any status from 400 on is an
    /// error.
    pub fn send(&self, call: &Call) -> Result<AzureResponse, AzureError> {
        let deadline = Instant::now() + self.state.settings.patience;
        Ok(self.deliver(&Outgoing::new(self, call)?, deadline, &())?.response)
    }

    /// All entries of a list, of all its pages: `value` of most services, `data` of Resource Graph.
    pub fn list(&self, call: &Call) -> Result<Vec<Value>, AzureError> {
        let first = Outgoing::new(self, call)?;
        let paging_error = |reason| AzureError::Paging { action: first.action.clone(), reason };
        let mut entries = Vec::new();
        let mut page = first.clone();
        for _ in 0..MAX_PAGES {
            let deadline = Instant::now() + self.state.settings.patience;
            let mut body = self.deliver(&page, deadline, &())?.response.body;
            let values = ["value", "data"].iter().find_map(|name| Some(body.get_mut(name)?.take()));
            match values {
                Some(Value::Array(values)) => entries.extend(values),
                _ => return Err(paging_error("the answer is not a list")),
            }
            let text = |name: &str| body.get(name)?.as_str().filter(|text| !text.is_empty());
            let next = if let Some(link) = text("nextLink").or_else(|| text("odata.nextLink")) {
                if !is_same_host(&first.url, link) {
                    return Err(paging_error("refused to follow the list to another host"));
                }
                first.get(&cudock_base::text::percent::repair(link))
            } else if let Some(token) = text("$skipToken") {
                let body = call.body.as_ref().map(Body::expose);
                first.clone().with_body(&with_skip_token(body.unwrap_or_default(), token))
            } else {
                return Ok(entries);
            };
            if next.is_same_request(&page) {
                return Err(paging_error("a page of the list leads to itself"));
            }
            page = next;
        }
        Err(paging_error("the list has too many pages"))
    }

    fn token_request(&self) -> TokenRequest<'_> {
        TokenRequest {
            http: &self.state.http,
            cloud: &self.state.cloud,
            retries: self.state.settings.retries,
            clock: &self.state.clock,
            canceled: &self.canceled,
        }
    }

    pub(crate) fn http(&self) -> &Client {
        &self.state.http
    }

    pub(crate) fn token(&self, plane: &Plane) -> Result<Secret, AzureError> {
        Ok(self.state.sign_in.token(&self.token_request(), &self.state.cloud.audience(plane))?)
    }
}

fn is_same_host(first: &str, next: &str) -> bool {
    match (first.parse::<Uri>(), cudock_base::text::percent::repair(next).parse::<Uri>()) {
        (Ok(first), Ok(next)) => is_same_origin(&first, &next),
        _ => false,
    }
}

/// The query of Resource Graph for the next page.
fn with_skip_token(mut query: Value, token: &str) -> Value {
    if let Some(query) = query.as_object_mut() {
        let options = query.entry("options").or_insert_with(|| json!({}));
        if let Some(options) = options.as_object_mut() {
            options.insert("$skipToken".to_owned(), Value::from(token));
        }
    }
    query
}
