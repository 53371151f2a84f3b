//! No secret is in any message, whatever a server echoes.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use cudock_azure::{AzureClient, AzureError, Body, StepObserver, Wait};
use cudock_base::{Report, Secret};
use cudock_http::{Method, Operation};
use cudock_testkit::http::{Reply, Request, Server, secret};
use serde_json::json;

use crate::support::{CLIENT, TENANT, client_with, reply, step};

/// What an observer receives.
#[derive(Default)]
struct Log(Mutex<String>);

impl StepObserver for Log {
    fn polling(&self, operation: &Operation) {
        write!(self.0.lock().unwrap(), "{operation:?}").unwrap();
    }

    fn retrying(&self, error: &AzureError, _: Duration) {
        write!(self.0.lock().unwrap(), "{error} {error:?}").unwrap();
    }
}

/// Everything that the request held, as an error of every form.
fn echo(request: &Request, status: u16) -> Reply {
    let decoded = cudock_base::text::percent::decode(&request.text()).unwrap_or_default();
    // What is cut off at the end cannot be seen.
    let text = format!("{} {decoded} {:?}", request.path, request.headers).replace('\n', " ");
    let details = json!([{"code": "Echo", "message": text}]);
    reply(status, &json!({"code": "Echo", "message": text, "error_description": text, "details": details}))
}

/// All texts that a step produces.
fn texts(client: &AzureClient, method: &Method, wait: Wait, password: &str) -> String {
    let mut step = step(method.clone(), "/x", wait);
    step.call.body = (*method == Method::PUT)
        .then(|| Body::new(json!({"password": ""})).secret("/password", Secret::new(password)));
    let log = Log::default();
    let result = client.run_observed(&step, &log);
    let mut texts = format!("{client:?} {step:?} {} {result:?}", log.0.into_inner().unwrap());
    if let Err(error) = result {
        write!(texts, "{error} {error:#?} {:?} {}", error.hints(), cudock_base::text::error_chain(&error))
            .unwrap();
    }
    texts
}

#[test]
fn tokens_passwords_and_signatures_are_in_no_text() {
    let [token, password, signature, client_secret] = std::array::from_fn(|_| secret());
    for status in [200, 202, 400, 401, 403, 404, 409, 500] {
        let (issued, signed) = (token.clone(), format!("/operations?s={signature}"));
        let server = Server::start(move |request| match request.method.as_str() {
            _ if request.path.ends_with("/token") => {
                reply(200, &json!({"access_token": issued, "expires_in": 3600}))
            }
            "GET" => echo(request, status.max(400)),
            _ if status >= 400 => echo(request, status),
            _ => Reply::new(status, "{}")
                .with("Azure-AsyncOperation", signed.clone())
                .with("Location", signed.clone())
                .with("Retry-After", "0"),
        });
        let client = client_with(
            &server,
            &[
                ("AZURE_TENANT_ID", TENANT),
                ("AZURE_CLIENT_ID", CLIENT),
                ("AZURE_CLIENT_SECRET", &client_secret),
            ],
        );
        for (method, wait) in
            [(Method::PUT, Wait::Operation), (Method::GET, Wait::Response), (Method::DELETE, Wait::Gone)]
        {
            let texts = texts(&client, &method, wait, &password);
            for (what, secret) in [
                ("token", &token),
                ("password", &password),
                ("signature", &signature),
                ("client secret", &client_secret),
            ] {
                assert!(!texts.contains(secret.as_str()), "{status}: {what}: {texts}");
            }
        }
        let sent = server.requests();
        assert!(sent.iter().any(|request| request.text().contains(&password)), "{status}: it was sent");
        assert_eq!(sent.iter().any(|request| request.path.contains(&signature)), status < 400, "{status}");
    }
}

#[test]
fn a_refused_sign_in_shows_none_of_its_secrets() {
    let swordfish = secret();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, &swordfish).unwrap();
    for status in [200, 400, 401, 403, 500] {
        let echoed = swordfish.clone();
        let server = Server::start(move |request| match status {
            200 => reply(200, &json!({"access_token": {"nested": echoed}, "value": echoed, "expires_in": 1})),
            status => echo(request, status),
        });
        let endpoint = format!("http://{}/msi", server.host());
        let application = [("AZURE_TENANT_ID", TENANT), ("AZURE_CLIENT_ID", CLIENT)];
        let ways: [Vec<(&str, &str)>; 5] = [
            vec![("AZURE_CLIENT_SECRET", &swordfish)],
            vec![("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap())],
            vec![("ACTIONS_ID_TOKEN_REQUEST_URL", &endpoint), ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", &swordfish)],
            vec![("IDENTITY_ENDPOINT", &endpoint), ("IDENTITY_HEADER", &swordfish)],
            vec![("MSI_ENDPOINT", &endpoint), ("MSI_SECRET", &swordfish)],
        ];
        for way in ways {
            let before = server.requests().len();
            let client = client_with(&server, &[way.clone(), application.to_vec()].concat());
            let error = client.principal().unwrap_err();
            let text = format!("{error} {error:?} {:?} {client:?}", error.hints());
            assert!(!text.contains(&swordfish), "{status} {}: {text}", way[0].0);
            let sent = server.requests().split_off(before);
            let was_sent = sent
                .iter()
                .any(|request| format!("{:?}{}", request.headers, request.text()).contains(&swordfish));
            assert!(was_sent, "{status} {}", way[0].0);
        }
    }
}
