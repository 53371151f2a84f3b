//! A client that signs in and sends plain requests.

use std::time::Duration;

use cudock_azure_testkit::{CLIENT_ID, CloudSettings, SUBSCRIPTION, StandIn, TENANT};
use cudock_base::Secret;
use cudock_http::{Client, ClientOptions, HttpError, Method, Request};
use serde_json::{Value, json};

pub(crate) struct Azure {
    pub(crate) stand_in: StandIn,
    client: Client,
    token: Secret,
}

pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) headers: Vec<(String, String)>,
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().or_else(|| self.body["code"].as_str()).unwrap_or_default()
    }
}

/// Headers that tests look at.
const HEADERS: [&str; 20] = [
    "azure-asyncoperation",
    "location",
    "retry-after",
    "etag",
    "date",
    "content-type",
    "x-ms-ratelimit-remaining-resource",
    "x-ms-ratelimit-remaining-subscription-reads",
    "x-ms-ratelimit-remaining-subscription-writes",
    "x-ms-ratelimit-remaining-subscription-deletes",
    "x-ms-ratelimit-remaining-subscription-global-reads",
    "x-ms-ratelimit-remaining-subscription-global-writes",
    "x-ms-ratelimit-remaining-subscription-global-deletes",
    "x-ms-ratelimit-remaining-subscription-resource-requests",
    "x-ms-ratelimit-remaining-subscription-resource-requests-pt1h",
    "x-ms-ratelimit-remaining-subscription-resource-requests-pt5m",
    "x-ms-request-id",
    "x-ms-correlation-request-id",
    "www-authenticate",
    "content-length",
];

/// Settings without delays that tests would have to wait for.
pub(crate) fn prompt() -> CloudSettings {
    CloudSettings {
        seconds_per_request: 1,
        consistency_lag: 0,
        graph_lag: 0,
        role_delay: 0,
        ..CloudSettings::default()
    }
}

impl Azure {
    pub(crate) fn start(settings: CloudSettings) -> Option<Self> {
        let stand_in = StandIn::start(settings)?;
        let options = ClientOptions {
            certificates: Some(stand_in.certificate().to_owned()),
            ..ClientOptions::default()
        };
        let client = Client::new(&options).unwrap();
        let token = sign_in(&stand_in, &client, "https://management.azure.com/.default");
        Some(Self { stand_in, client, token })
    }

    pub(crate) fn token_for(&self, scope: &str) -> Secret {
        sign_in(&self.stand_in, &self.client, scope)
    }

    pub(crate) fn send(
        &self,
        method: &Method,
        url: &str,
        body: Option<&Value>,
    ) -> Result<Answered, HttpError> {
        self.send_with(method, url, body, &self.token)
    }

    pub(crate) fn send_with(
        &self,
        method: &Method,
        url: &str,
        body: Option<&Value>,
        token: &Secret,
    ) -> Result<Answered, HttpError> {
        let header = Secret::new(format!("Bearer {}", token.expose().as_str()));
        let request = Request::new(method.clone(), url).authorization(Some(header)).without_redirects();
        let request = match body {
            Some(body) => request.json(body).unwrap(),
            None => request,
        };
        let mut response = self.client.send(&request)?;
        let headers = HEADERS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), response.header(name)?.to_owned())))
            .collect();
        let bytes = response.bytes(1 << 24)?;
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes).into_owned()));
        Ok(Answered { status: response.status(), body, headers })
    }

    /// The URL of a path within the subscription.
    pub(crate) fn url(&self, path: &str) -> String {
        let separator = if path.contains('?') { '&' } else { '?' };
        format!("{}/subscriptions/{SUBSCRIPTION}{path}{separator}api-version=2021-04-01", self.stand_in.url())
    }

    pub(crate) fn get(&self, path: &str) -> Answered {
        self.send(&Method::GET, &self.url(path), None).unwrap()
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Answered {
        self.send(&Method::PUT, &self.url(path), Some(body)).unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answered {
        self.send(&Method::POST, &self.url(path), Some(body)).unwrap()
    }

    pub(crate) fn delete(&self, path: &str) -> Answered {
        self.send(&Method::DELETE, &self.url(path), None).unwrap()
    }

    pub(crate) fn group(&self, name: &str) {
        let created = self.put(&format!("/resourceGroups/{name}"), &json!({"location": "eastus"}));
        assert_eq!(created.status, 201, "{}", created.body);
    }

    /// Polls a long-running operation until it ends, and returns its last answer.
    pub(crate) fn wait(&self, answered: &Answered) -> Answered {
        let mut location = answered.header("location").map(str::to_owned);
        for _ in 0..2000 {
            if let Some(status) = answered.header("azure-asyncoperation") {
                let polled = self.send(&Method::GET, status, None).unwrap();
                if ["Succeeded", "Failed", "Canceled"].contains(&polled.body["status"].as_str().unwrap()) {
                    return polled;
                }
            } else {
                let polled = self.send(&Method::GET, location.as_ref().unwrap(), None).unwrap();
                if polled.status != 202 {
                    return polled;
                }
                let next = polled.header("location").map(str::to_owned);
                assert_ne!(next, location, "every poll has a new signature");
                location = next;
            }
        }
        panic!("the operation does not end");
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.stand_in.advance(Duration::from_secs(seconds));
    }
}

fn sign_in(stand_in: &StandIn, client: &Client, scope: &str) -> Secret {
    let secret =
        stand_in.environment().into_iter().find(|(name, _)| *name == "AZURE_CLIENT_SECRET").unwrap().1;
    let request = Request::new(Method::POST, format!("{}/{TENANT}/oauth2/v2.0/token", stand_in.plain_url()))
        .form(&[
            ("client_id", CLIENT_ID),
            ("client_secret", &secret),
            ("grant_type", "client_credentials"),
            ("scope", scope),
        ]);
    let answer: Value = client.send_for_json(&request, 1 << 16).unwrap();
    Secret::new(answer["access_token"].as_str().unwrap())
}
