//! Long-running operations.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cudock_http::{
    Client, HttpError, HttpErrorKind, Method, NoProgress, Operation, OperationError, OperationResponse,
    Polling, Request, Response,
};
use serde_json::{Value, json};

use crate::{QUICK, client, url};
use cudock_testkit::http::{Reply, Server};

type Outcome = Result<Option<Value>, OperationError<HttpError>>;

fn read(mut response: Response) -> Result<OperationResponse, HttpError> {
    let bytes = response.bytes(1 << 20)?;
    Ok(OperationResponse::new(&response, serde_json::from_slice(&bytes).ok()))
}

/// Waits as `how` says, within `timeout`. Returns what it returned, and the last operation that was polled.
fn polling(
    client: &Client,
    timeout: Duration,
    how: impl FnOnce(&Polling<'_, HttpError>) -> Outcome,
) -> (Outcome, Option<Operation>) {
    let polled = RefCell::new(None);
    let outcome = how(&Polling {
        get: &|url| {
            QUICK.run(&NoProgress, "poll", || {
                client.send(&Request::get(url))?.error_for_status().and_then(read)
            })
        },
        is_gone: &|error| error.kind == HttpErrorKind::Status(404),
        interval: Duration::from_millis(1),
        timeout,
        canceled: &AtomicBool::new(false),
        on_poll: &|operation| *polled.borrow_mut() = Some(operation.clone()),
    });
    (outcome, polled.into_inner())
}

/// Sends a request with this method to `/resource` and waits for its end.
fn run(client: &Client, server: &Server, method: &Method) -> Outcome {
    let url = url(server, "/resource");
    let request =
        Request::new(method.clone(), url.as_str()).json(&json!({"location": "westeurope"})).unwrap();
    let response = read(client.send(&request).unwrap()).unwrap();
    polling(client, Duration::from_secs(20), |polling| polling.wait(method, &url, response)).0
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
    assert_eq!(run(&client(), &server, &Method::PUT).unwrap(), Some(json!({"id": 7})));
}

#[test]
fn a_failed_operation_says_why() {
    let error = json!({"code": "QuotaExceeded", "message": "0 of 4 cores"});
    for (status, error) in [("Failed", Some(error)), ("Canceled", None)] {
        let body = json!({"status": status, "error": error});
        let server = Server::start(move |request| match request.method.as_str() {
            "DELETE" => Reply::new(202, "").with("Azure-AsyncOperation", "/operations/1"),
            _ => reply(200, &body),
        });
        let expected = OperationError::Failed { status: status.to_owned(), error: Some(json!(error)) };
        assert_eq!(run(&client(), &server, &Method::DELETE), Err(expected));
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
    assert_eq!(run(&client(), &server, &Method::POST).unwrap(), Some(json!({"value": [1]})));
    assert_eq!(server.count("/results/1"), 3);
    let server = Server::start(|request| match request.path.as_str() {
        "/resource" => Reply::new(202, "").with("Location", "/gone"),
        _ => Reply::new(204, ""),
    });
    assert_eq!(run(&client(), &server, &Method::DELETE).unwrap(), None);
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
    assert_eq!(run(&client(), &server, &Method::POST).unwrap(), Some(json!({"key": "value"})));
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
    let resource = run(&client(), &server, &Method::PATCH).unwrap().unwrap();
    assert_eq!(
        (&resource["properties"]["provisioningState"], server.requests().len()),
        (&json!("Succeeded"), 4)
    );
    let server = Server::start(|_| reply(200, &json!({"id": 1})));
    assert_eq!(run(&client(), &server, &Method::PUT).unwrap(), Some(json!({"id": 1})));
    assert_eq!(server.requests().len(), 1, "done at once");
}

#[test]
fn an_operation_that_never_ends_times_out() {
    let server = Server::start(|request| match request.method.as_str() {
        "PUT" => Reply::new(202, "").with("Azure-AsyncOperation", "/operations/1"),
        _ => reply(200, &json!({"status": "InProgress"})).with("Retry-After", u64::MAX.to_string()),
    });
    assert_eq!(
        run(&client(), &server, &Method::PUT).unwrap_err(),
        OperationError::TimedOut(Duration::from_secs(20))
    );
}

#[test]
fn an_operation_is_not_followed_to_another_host() {
    let elsewhere = Server::start(|_| reply(200, &json!({"status": "Succeeded"})));
    let operation = url(&elsewhere, "/operations/1");
    let server = Server::start(move |_| Reply::new(202, "").with("Azure-AsyncOperation", operation.clone()));
    let error = run(&client(), &server, &Method::PUT).unwrap_err();
    assert!(matches!(error, OperationError::Protocol(error) if error.kind == HttpErrorKind::Refused));
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn the_newest_of_4_kib_urls_is_polled() {
    let signed = |number: usize| format!("/results?n={number}&s={}", "s".repeat(4096));
    let polls = AtomicUsize::new(0);
    let server = Server::start(move |request| {
        let number = polls.fetch_add(1, Ordering::SeqCst);
        match number {
            0 => Reply::new(202, "").with("Location", signed(1)),
            number if request.path != signed(number) => Reply::new(404, ""),
            1..4 => Reply::new(202, "").with("Location", signed(number + 1)),
            _ => reply(200, &json!({"id": 1})),
        }
    });
    assert_eq!(run(&client(), &server, &Method::PUT).unwrap(), Some(json!({"id": 1})));
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn a_stored_operation_is_resumed_by_another_process() {
    let is_done = AtomicBool::new(false);
    let server = Server::start(move |request| match request.path.as_str() {
        "/operations/1?s=signature" if is_done.swap(true, Ordering::SeqCst) => {
            reply(200, &json!({"status": "Succeeded"}))
        }
        "/operations/1?s=signature" => reply(200, &json!({"status": "Running"})).with("Retry-After", "3600"),
        _ => reply(200, &json!({"id": 7})),
    });
    let (client, resource) = (client(), url(&server, "/resource"));
    let begun = OperationResponse {
        status: 201,
        body: None,
        retry_after: None,
        operation: Some(url(&server, "/operations/1?s=signature")),
        location: None,
    };
    let (outcome, operation) =
        polling(&client, Duration::from_secs(20), |polling| polling.wait(&Method::PUT, &resource, begun));
    assert!(matches!(outcome, Err(OperationError::TimedOut(_))));
    let operation = operation.unwrap();
    assert!(!format!("{operation:?}").contains("signature"));
    let stored = operation.to_secret();
    let (outcome, _) = polling(&client, Duration::from_secs(20), |polling| {
        polling.resume(Operation::from_secret(&stored).unwrap())
    });
    assert_eq!(outcome.unwrap(), Some(json!({"id": 7})));
}

#[test]
fn a_forgotten_operation_is_known_by_its_resource() {
    let server = Server::start(|request| match (request.method.as_str(), request.path.as_str()) {
        ("DELETE" | "POST", _) => Reply::new(202, "").with("Location", "/expired"),
        ("PUT", _) => Reply::new(201, "").with("Azure-AsyncOperation", "/expired"),
        (_, "/expired") => Reply::new(404, ""),
        _ => reply(200, &json!({"properties": {"provisioningState": "Succeeded"}})),
    });
    let resource = json!({"properties": {"provisioningState": "Succeeded"}});
    assert_eq!(run(&client(), &server, &Method::PUT).unwrap(), Some(resource.clone()));
    assert_eq!(run(&client(), &server, &Method::DELETE).unwrap(), Some(resource), "it was not deleted");
    let error = run(&client(), &server, &Method::POST).unwrap_err();
    assert!(matches!(error, OperationError::Request(error) if error.kind == HttpErrorKind::Status(404)));
}

#[test]
fn a_failed_resource_can_be_deleted() {
    let server = Server::start(|_| reply(200, &json!({"properties": {"provisioningState": "Failed"}})));
    assert!(run(&client(), &server, &Method::DELETE).is_ok());
    assert!(matches!(run(&client(), &server, &Method::PUT), Err(OperationError::Failed { .. })));
}

#[test]
fn an_action_without_a_result_succeeds() {
    let server = Server::start(|request| match request.path.as_str() {
        "/resource" => {
            Reply::new(202, "").with("Azure-AsyncOperation", "/operations/1").with("Location", "/none")
        }
        "/operations/1" => reply(200, &json!({"status": "Succeeded"})),
        _ => Reply::new(404, ""),
    });
    assert_eq!(run(&client(), &server, &Method::POST).unwrap(), None);
}

#[test]
fn a_deletion_is_done_when_the_resource_is_gone() {
    let polls = AtomicUsize::new(0);
    let server = Server::start(move |_| match polls.fetch_add(1, Ordering::SeqCst) {
        0 => reply(200, &json!({"properties": {"provisioningState": "Deleting"}})),
        1 => reply(200, &json!({"state": "deleting"})),
        _ => Reply::new(404, ""),
    });
    let operation = Operation::of_resource(&Method::DELETE, url(&server, "/pools/1"));
    let (outcome, _) = polling(&client(), Duration::from_secs(20), |polling| polling.resume(operation));
    assert_eq!((outcome.unwrap(), server.requests().len()), (None, 3));
}

#[test]
fn a_canceled_wait_sends_nothing_more() {
    let server = Server::start(|_| Reply::new(500, ""));
    let resource = url(&server, "/resource");
    let polling = Polling::<HttpError> {
        get: &|url| client().send(&Request::get(url)).and_then(read),
        is_gone: &|_| false,
        interval: Duration::from_secs(3600),
        timeout: Duration::from_secs(7200),
        canceled: &AtomicBool::new(true),
        on_poll: &|_| {},
    };
    let outcome = polling.resume(Operation::of_resource(&Method::PUT, resource));
    assert_eq!((outcome, server.requests().len()), (Err(OperationError::Canceled), 0));
}
