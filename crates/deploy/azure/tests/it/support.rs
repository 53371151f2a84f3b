//! A server that issues tokens and answers as a test says, and a client for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cudock_azure::{AzureClient, Body, Call, ClientSettings, Phase, Plane, SignInOptions, Step, Wait};
use cudock_base::Environment;
use cudock_http::{Method, RetryPolicy};
use cudock_testkit::http::{Reply, Request, Server, secret};
use serde_json::{Value, json};

pub(crate) const TENANT: &str = "11111111-0000-0000-0000-000000000000";
pub(crate) const CLIENT: &str = "22222222-0000-0000-0000-000000000000";

/// Tests that write or start programs take turns: a program that another thread's child still has open for writing cannot
/// be executed.
pub(crate) fn my_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn settings() -> ClientSettings {
    ClientSettings {
        retries: RetryPolicy {
            max_retries: 3,
            initial_delay: Duration::from_millis(1),
            max_delay: Duration::from_millis(5),
        },
        poll_interval: Duration::from_millis(1),
        patience: Duration::from_secs(60),
    }
}

pub(crate) fn reply(status: u16, body: &Value) -> Reply {
    Reply::new(status, body.to_string()).with("Content-Type", "application/json")
}

pub(crate) fn refusal(status: u16, code: &str) -> Reply {
    reply(status, &json!({"error": {"code": code, "message": "the reason"}}))
}

/// A server that issues `token-1`, `token-2`, … and answers other requests as `handler` says.
pub(crate) fn azure(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
    let tokens = AtomicUsize::new(0);
    Server::start(move |request| {
        if !request.path.ends_with("/oauth2/v2.0/token") {
            return handler(request);
        }
        let token = format!("token-{}", tokens.fetch_add(1, Ordering::SeqCst) + 1);
        reply(200, &json!({"token_type": "Bearer", "expires_in": 3599, "access_token": token}))
    })
}

/// The endpoints of a server.
pub(crate) fn endpoints(server: &Server) -> Vec<(String, String)> {
    ["CUDOCK_AZURE_RESOURCE_MANAGER", "CUDOCK_AZURE_BATCH", "CUDOCK_AZURE_ML", "AZURE_AUTHORITY_HOST"]
        .iter()
        .map(|name| ((*name).to_owned(), format!("http://{}", server.host())))
        .collect()
}

/// A client that signs in as these variables say, with what they hold.
pub(crate) fn client_with(server: &Server, variables: &[(&str, &str)]) -> AzureClient {
    let own = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment = Environment::of("/nowhere", endpoints(server).into_iter().chain(own));
    AzureClient::from_environment(&environment, &SignInOptions::default(), settings()).unwrap()
}

/// A client that signs in with a secret.
pub(crate) fn client(server: &Server) -> AzureClient {
    let secret = secret();
    client_with(
        server,
        &[("AZURE_TENANT_ID", TENANT), ("AZURE_CLIENT_ID", CLIENT), ("AZURE_CLIENT_SECRET", &secret)],
    )
}

pub(crate) fn call(method: Method, path: &str) -> Call {
    let body =
        matches!(method, Method::PUT | Method::POST).then(|| Body::new(json!({"location": "westeurope"})));
    Call { method, plane: Plane::ResourceManager, path: path.to_owned(), body }
}

pub(crate) fn step(method: Method, path: &str, wait: Wait) -> Step {
    Step {
        id: "step".to_owned(),
        phase: Phase::Create,
        call: call(method, path),
        resource: None,
        is_billed: false,
        wait,
        timeout: Duration::from_secs(60),
    }
}

/// The fields of a form, decoded, in order.
pub(crate) fn form(request: &Request) -> Vec<(String, String)> {
    let decode = |text: &str| cudock_base::text::percent::decode(text).unwrap();
    let text = request.text();
    text.split('&')
        .filter_map(|field| field.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

/// Requests other than those for tokens.
pub(crate) fn api_requests(server: &Server) -> Vec<Request> {
    server.requests().into_iter().filter(|request| !request.path.ends_with("/oauth2/v2.0/token")).collect()
}
