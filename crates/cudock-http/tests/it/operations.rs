//! Long-running operations.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cudock_base::Secret;
use cudock_http::{Client, HttpErrorKind, Method, NoProgress, OperationError, Polling, Request};
use serde_json::{Value, json};

use crate::{QUICK, client, url};
use cudock_testkit::http::{Reply, Server};

/// Sends a request with this method to `/resource` and waits for its end.
fn run(client: &Client, server: &Server, method: Method) -> Result<Option<Value>, OperationError> {
    let tokens = Mutex::new(0);
    let polling = Polling {
        client,
        authorization: &|| {
            let mut tokens = tokens.lock().unwrap();
            *tokens += 1;
            Ok(Some(Secret::new(format!("Bearer {tokens}"))))
        },
        interval: Duration::from_millis(1),
        timeout: Duration::from_secs(20),
        retries: QUICK,
        progress: &NoProgress,
        name: "create",
    };
    let request =
        Request::new(method, url(server, "/resource")).json(&json!({"location": "westeurope"})).unwrap();
    let response = client.send(&request)?;
    polling.wait(&request, response)
}

fn reply(status: u16, body: &Value) -> Reply {
    Reply::new(status, body.to_string())
}

#[test]
fn an_azure_operation_is_polled_and_its_resource_returned() {
    let polls = AtomicUsize::new(0);
    let server = Server::start(move |request| match (request.method.as_str(), request.path.as_str()) {
        ("PUT", "/resource") => reply(201, &json!({"properties": {"provisioningState": "Creating"}}))
            .with("Azure-AsyncOperation", "/operations/1")
            .with("Retry-After", "0"),
        ("GET", "/operations/1") => match polls.fetch_add(1, Ordering::SeqCst) {
            0 => reply(200, &json!({"status": "InProgress"})),
            1 => Reply::new(503, ""),
            2 => reply(200, &json!({"status": "Running"})).with("Azure-AsyncOperation", "/operations/2"),
            _ => Reply::new(404, ""),
        },
        ("GET", "/operations/2") => reply(200, &json!({"status": "Succeeded"})),
        ("GET", "/resource") => reply(200, &json!({"id": 7})),
        _ => Reply::new(404, ""),
    });
    assert_eq!(run(&client(), &server, Method::PUT).unwrap(), Some(json!({"id": 7})));
    let tokens: Vec<_> = server
        .requests()
        .iter()
        .filter_map(|request| request.header("authorization").map(str::to_owned))
        .collect();
    assert_eq!(tokens.first().map(String::as_str), Some("Bearer 1"));
    assert_eq!(tokens.last().map(String::as_str), Some("Bearer 5"), "a new token for every request");
}

#[test]
fn a_failed_operation_says_why() {
    for (status, body) in [
        (
            "Failed",
            json!({"status": "Failed", "error": {"code": "QuotaExceeded", "message": "0 of 4 cores"}}),
        ),
        ("Canceled", json!({"status": "Canceled"})),
    ] {
        let server = Server::start(move |request| match request.method.as_str() {
            "DELETE" => Reply::new(202, "").with("Azure-AsyncOperation", "/operations/1"),
            _ => reply(200, &body),
        });
        let error = run(&client(), &server, Method::DELETE).unwrap_err();
        let OperationError::Failed { status: told, code, message } = error else { panic!("{error:?}") };
        assert_eq!(told, status);
        if status == "Failed" {
            assert_eq!((code.as_deref(), message.as_deref()), (Some("QuotaExceeded"), Some("0 of 4 cores")));
        }
    }
}

#[test]
fn a_location_is_polled_until_it_is_not_202() {
    let polls = AtomicUsize::new(0);
    let server = Server::start(move |request| match request.path.as_str() {
        "/resource" => Reply::new(202, "").with("Location", "/results/1"),
        "/results/1" if polls.fetch_add(1, Ordering::SeqCst) < 2 => {
            Reply::new(202, "").with("Location", "/results/1").with("Retry-After", "0")
        }
        _ => reply(200, &json!({"value": [1]})),
    });
    assert_eq!(run(&client(), &server, Method::POST).unwrap(), Some(json!({"value": [1]})));
    assert_eq!(server.count("/results/1"), 3);
    let server = Server::start(|request| match request.path.as_str() {
        "/resource" => Reply::new(202, "").with("Location", "/gone"),
        _ => Reply::new(204, ""),
    });
    assert_eq!(run(&client(), &server, Method::DELETE).unwrap(), None);
}

#[test]
fn the_result_of_a_post_is_at_its_location() {
    let server = Server::start(|request| match request.path.as_str() {
        "/resource" => {
            Reply::new(202, "").with("Azure-AsyncOperation", "/operations/1").with("Location", "/result")
        }
        "/operations/1" => reply(200, &json!({"status": "Succeeded"})),
        _ => reply(200, &json!({"key": "value"})),
    });
    assert_eq!(run(&client(), &server, Method::POST).unwrap(), Some(json!({"key": "value"})));
}

#[test]
fn a_resource_without_an_operation_is_polled_by_its_own_state() {
    let polls = AtomicUsize::new(0);
    let server = Server::start(move |request| {
        let state = match (request.method.as_str(), polls.fetch_add(1, Ordering::SeqCst)) {
            ("GET", 3..) => "Succeeded",
            _ => "Updating",
        };
        reply(200, &json!({"properties": {"provisioningState": state}}))
    });
    let resource = run(&client(), &server, Method::PATCH).unwrap().unwrap();
    assert_eq!(
        (&resource["properties"]["provisioningState"], server.requests().len()),
        (&json!("Succeeded"), 4)
    );
    let server = Server::start(|_| reply(200, &json!({"id": 1})));
    assert_eq!(run(&client(), &server, Method::PUT).unwrap(), Some(json!({"id": 1})));
    assert_eq!(server.requests().len(), 1, "done at once");
}

#[test]
fn an_operation_that_never_ends_times_out() {
    let server = Server::start(|request| match request.method.as_str() {
        "PUT" => Reply::new(202, "").with("Azure-AsyncOperation", "/operations/1"),
        _ => reply(200, &json!({"status": "InProgress"})).with("Retry-After", "3600"),
    });
    assert_eq!(
        run(&client(), &server, Method::PUT).unwrap_err(),
        OperationError::TimedOut(Duration::from_secs(20))
    );
}

#[test]
fn an_operation_is_not_followed_to_another_host() {
    let elsewhere = Server::start(|_| reply(200, &json!({"status": "Succeeded"})));
    let operation = url(&elsewhere, "/operations/1");
    let server = Server::start(move |_| Reply::new(202, "").with("Azure-AsyncOperation", operation.clone()));
    let error = run(&client(), &server, Method::PUT).unwrap_err();
    assert!(matches!(error, OperationError::Http(error) if error.kind == HttpErrorKind::Refused));
    assert!(elsewhere.requests().is_empty());
}
