//! The first requests of a pull.

use cudock_azure::preflight::{PullCredentials, PullQuestion, PullResult};
use cudock_testkit::http::{Reply, Request};
use serde_json::json;

use crate::support::{azure, client, reply};

/// A value that looks like a token, and is none.
fn token(name: &str) -> String {
    format!("{name}-{}", "x".repeat(24))
}

/// Asks a registry that answers like this: exchange, token, manifest.
fn ask(exchange: u16, grant: u16, manifest: u16) -> (PullResult, Vec<Request>) {
    let server = azure(move |request| match request.path.as_str() {
        "/oauth2/exchange" => reply(exchange, &json!({"refresh_token": token("refresh")})),
        "/oauth2/token" => reply(grant, &json!({"access_token": token("access")})),
        _ => Reply::new(manifest, ""),
    });
    let question = PullQuestion {
        registry: format!("http://{}", server.host()),
        repository: "team/train".to_owned(),
        reference: "1.4".to_owned(),
    };
    let result = client(&server).pull_right(&question);
    let to_registry = |request: &Request| !request.path.ends_with("/oauth2/v2.0/token");
    (result, server.requests().into_iter().filter(to_registry).collect())
}

#[test]
fn the_answers_decide() {
    let denied = PullResult::Denied(PullCredentials::Account);
    for (exchange, grant, manifest, expected) in [
        (200, 200, 200, PullResult::Allowed),
        (401, 200, 200, denied.clone()),
        (200, 401, 200, denied.clone()),
        (200, 200, 403, denied.clone()),
        (200, 200, 404, PullResult::NotFound),
    ] {
        assert_eq!(ask(exchange, grant, manifest).0, expected, "{exchange} {grant} {manifest}");
    }
    assert!(matches!(ask(500, 200, 200).0, PullResult::Unreachable(_)));
}

#[test]
fn tokens_are_exchanged_and_the_manifest_is_not_read() {
    let (_, requests) = ask(200, 200, 200);
    let [exchange, grant, manifest] = requests.as_slice() else { panic!("{}", requests.len()) };
    let fields = exchange.text();
    assert!(fields.starts_with("grant_type=access_token&service=127.0.0.1"), "{}", fields.len());
    assert!(fields.ends_with("&access_token=token-1"), "{}", fields.len());
    assert!(grant.text().contains("repository%3Ateam%2Ftrain%3Apull"));
    assert_eq!((manifest.method.as_str(), manifest.path.as_str()), ("HEAD", "/v2/team/train/manifests/1.4"));
    assert_eq!(manifest.header("authorization"), Some(format!("Bearer {}", token("access")).as_str()));
}
