//! Refused, throttled and lost requests.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use cudock_azure::{AzureError, Cause, Plane};
use cudock_base::{ErrorKind, Report, Timestamp};
use cudock_http::Method;
use cudock_testkit::http::Reply;
use serde_json::json;

use crate::support::{api_requests, azure, call, client, refusal, reply};

#[test]
fn an_answer_has_status_body_date_and_request_id() {
    let server = azure(|_| {
        reply(200, &json!({"id": 1, "unknown": {"new": [1]}}))
            .with("Date", "Fri, 10 May 2024 07:51:58 GMT")
            .with("x-ms-request-id", "r-1")
    });
    let answer = client(&server).send(&call(Method::PUT, "/x?api-version=1")).unwrap();
    assert_eq!((answer.status, &answer.body["id"]), (200, &json!(1)));
    assert_eq!(answer.date, Timestamp::parse("2024-05-10T07:51:58Z"));
    assert_eq!(answer.request_id.as_deref(), Some("r-1"));
    assert!(!format!("{answer:?}").contains("unknown"), "a body may hold keys");
    let request = &api_requests(&server)[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("PUT", "/x?api-version=1"));
    assert_eq!(request.header("authorization"), Some("Bearer token-1"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("x-ms-client-request-id").map(str::len), Some(36));
    assert_eq!(request.text(), json!({"location": "westeurope"}).to_string());
}

#[test]
fn a_text_is_an_answer_too() {
    let server = azure(|_| Reply::new(200, "hello\n").with("Content-Type", "text/plain"));
    let answer = client(&server).send(&call(Method::GET, "/stdout.txt")).unwrap();
    assert_eq!(answer.body, json!("hello\n"));
    let server = azure(|_| Reply::new(204, ""));
    assert!(client(&server).send(&call(Method::DELETE, "/x")).unwrap().body.is_null());
}

#[test]
fn each_plane_has_its_token_and_its_content_type() {
    let server = azure(|_| Reply::new(200, "{}"));
    let client = client(&server);
    let account = |name: &str| {
        let (account, region) = (name.to_owned(), "westeurope".to_owned());
        Plane::Batch { account, region, endpoint: None }
    };
    for plane in [
        Plane::ResourceManager,
        account("a"),
        account("b"),
        Plane::MlHistory { region: "x".to_owned(), endpoint: None },
    ] {
        let mut call = call(Method::PUT, "/x");
        call.plane = plane;
        client.send(&call).unwrap();
    }
    let sent: Vec<_> = api_requests(&server)
        .iter()
        .map(|request| [request.headers["authorization"].clone(), request.headers["content-type"].clone()])
        .collect();
    let (json, odata) = ("application/json", "application/json; odata=minimalmetadata");
    let expected = [["1", json], ["2", odata], ["2", odata], ["3", json]];
    assert_eq!(sent, expected.map(|[token, media]| [format!("Bearer token-{token}"), media.to_owned()]));
}

#[test]
fn an_expired_token_is_replaced_once() {
    let server = azure(|request| match request.header("authorization") {
        Some("Bearer token-1") => refusal(401, "ExpiredAuthenticationToken"),
        _ => Reply::new(200, "{}"),
    });
    let (client, call) = (client(&server), call(Method::POST, "/start"));
    client.send(&call).unwrap();
    client.send(&call).unwrap();
    assert_eq!((server.count("/token"), server.count("/start")), (2, 3));

    let server = azure(|_| refusal(401, "InvalidAuthenticationTokenTenant"));
    let error = crate::support::client(&server).send(&call).unwrap_err();
    assert_eq!((error.status(), error.cause()), (Some(401), Cause::Unauthorized));
    assert_eq!((server.count("/token"), server.count("/start")), (2, 2));
}

#[test]
fn what_cannot_change_is_not_retried() {
    for (status, code, cause) in [
        (403, "AuthorizationFailed", Cause::Forbidden),
        (403, "RequestDisallowedByPolicy", Cause::Policy),
        (409, "ScopeLocked", Cause::Locked),
        (409, "ResourceGroupBeingDeleted", Cause::GroupDeleting),
        (409, "MissingSubscriptionRegistration", Cause::NotRegistered),
        (404, "ResourceNotFound", Cause::NotFound),
        (400, "SomethingNew", Cause::Other),
    ] {
        let server = azure(move |_| refusal(status, code).with("x-ms-correlation-request-id", "c-1"));
        let error = client(&server).send(&call(Method::PUT, "/x?sig=1")).unwrap_err();
        assert_eq!((error.status(), error.cause()), (Some(status), cause));
        assert_eq!(error.to_string(), format!("PUT /x: {code}: the reason (request id c-1)"));
        assert_eq!((error.kind(), server.count("/x")), (ErrorKind::Outside, 1));
    }
}

#[test]
fn a_429_storm_is_waited_out() {
    let count = AtomicUsize::new(0);
    let server = azure(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        // More often than lost answers are retried. Compute has no outer `error`.
        0..12 => reply(429, &json!({"code": "OperationNotAllowed", "message": "too many requests"}))
            .with("Retry-After", "0"),
        _ => Reply::new(200, "{}"),
    });
    client(&server).send(&call(Method::POST, "/start")).unwrap();
    assert_eq!(server.count("/start"), 13);
}

#[test]
fn a_wait_that_is_too_long_is_an_error_for_all_requests_of_the_provider() {
    let server = azure(|request| match request.path.as_str() {
        path if path.contains("Microsoft.Compute") => {
            refusal(429, "TooManyRequests").with("Retry-After", "1200")
        }
        _ => Reply::new(200, "{}"),
    });
    let client = client(&server);
    let get = |path: &str| client.send(&call(Method::GET, path));
    for _ in 0..3 {
        let error = get("/subscriptions/s/providers/Microsoft.Compute/skus").unwrap_err();
        assert_eq!(
            (error.cause(), error.hints()),
            (Cause::Throttled, vec!["try again in 1200 s".to_owned()])
        );
    }
    assert_eq!(server.count("Microsoft.Compute"), 1, "a request before the end prolongs the wait");
    get("/subscriptions/s/providers/Microsoft.Network/x").unwrap();
}

#[test]
fn a_lost_answer_is_requested_again_where_that_is_harmless() {
    for (method, path, attempts) in [
        (Method::GET, "/x", 4),
        (Method::PUT, "/x", 4),
        (Method::DELETE, "/x", 4),
        (Method::POST, "/x/listKeys", 4),
        (Method::POST, "/x/start", 1),
    ] {
        for broken in [
            Reply::new(200, "{\"id\": 1}").cut_after(3),
            reply(200, &json!({})).cut_after(0),
            Reply { pieces: vec![Vec::new()], ..Reply::default() },
            Reply::new(500, ""),
            Reply::new(503, "busy").with("Retry-After", "0"),
        ] {
            let server = azure(move |_| broken.clone());
            let error = client(&server).send(&call(method.clone(), path)).unwrap_err();
            assert!(matches!(error, AzureError::Http { .. } | AzureError::Service(_)), "{error:?}");
            assert_eq!(server.count("/x"), attempts, "{method} {path}: {error}");
        }
    }
    let count = AtomicUsize::new(0);
    let server = azure(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::new(200, "{\"id\": 1}").cut_after(3),
        _ => Reply::new(200, "{\"id\": 1}"),
    });
    assert_eq!(client(&server).send(&call(Method::PUT, "/x")).unwrap().body, json!({"id": 1}));
}

#[test]
fn a_canceled_client_stops_waiting_and_another_goes_on() {
    let waiting = Arc::new(Barrier::new(2));
    let arrived = Arc::clone(&waiting);
    let server = azure(move |_| {
        arrived.wait();
        refusal(409, "AnotherOperationInProgress").with("Retry-After", "50")
    });
    let flag = Arc::new(AtomicBool::new(false));
    let client = client(&server).cancelable_by(Arc::clone(&flag));
    let request = thread::spawn({
        let client = client.clone();
        move || client.send(&call(Method::PUT, "/x"))
    });
    waiting.wait();
    flag.store(true, Ordering::SeqCst);
    let error = request.join().unwrap().unwrap_err();
    assert_eq!(error, AzureError::Canceled { action: "PUT /x".to_owned() });
    let error = client.send(&call(Method::PUT, "/x")).unwrap_err();
    assert!(matches!(error, AzureError::Canceled { .. }), "{error}");
    assert_eq!(server.count("/x"), 1);
}

#[test]
fn an_unreachable_service_has_a_hint() {
    let server = azure(|_| Reply::new(200, "{}"));
    let client = client(&server);
    client.send(&call(Method::GET, "/x")).unwrap();
    drop(server);
    let error = client.send(&call(Method::GET, "/x")).unwrap_err();
    assert!(matches!(error, AzureError::Http { .. }), "{error}");
    assert!(error.hints()[0].contains("HTTPS_PROXY"));
}

#[test]
fn an_invalid_call_is_not_sent() {
    let server = azure(|_| Reply::new(200, "{}"));
    let error = client(&server).send(&call(Method::GET, "no-slash")).unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Input, 0));
}
