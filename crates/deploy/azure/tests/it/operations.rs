//! Steps that take a while.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cudock_azure::{AzureError, Cause, Plane, StepObserver, Wait};
use cudock_base::Timestamp;
use cudock_http::{Method, Operation};
use cudock_testkit::http::Reply;
use serde_json::json;

use crate::support::{api_requests, azure, client, refusal, reply, step};

/// The methods and paths of the requests, without those for tokens.
fn sent(server: &cudock_testkit::http::Server) -> Vec<String> {
    api_requests(server).iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

#[test]
fn an_azure_async_operation_ends_with_the_resource() {
    let polls = AtomicUsize::new(0);
    let server = azure(move |request| match (request.method.as_str(), request.path.as_str()) {
        ("PUT", _) => reply(201, &json!({"properties": {"provisioningState": "Creating"}}))
            .with("Azure-AsyncOperation", "/operations/1?s=signature")
            .with("Retry-After", "0"),
        (_, "/operations/1?s=signature") => match polls.fetch_add(1, Ordering::SeqCst) {
            0 => reply(200, &json!({"status": "InProgress"})).with("Retry-After", "0"),
            1 => refusal(401, "ExpiredAuthenticationToken"),
            2 => refusal(429, "TooManyRequests").with("Retry-After", "0"),
            3 => Reply::new(502, ""),
            _ => reply(200, &json!({"status": "Succeeded"})),
        },
        _ => reply(200, &json!({"id": "vm"})).with("Date", "Fri, 10 May 2024 07:51:58 GMT"),
    });
    let answer = client(&server).run(&step(Method::PUT, "/vm", Wait::Operation)).unwrap();
    assert_eq!((answer.status, answer.body), (200, json!({"id": "vm"})));
    assert_eq!(answer.date, Timestamp::parse("2024-05-10T07:51:58Z"));
    let requests = api_requests(&server);
    assert!(requests.iter().all(|request| request.header("authorization").is_some()));
    assert_eq!(requests.last().unwrap().header("authorization"), Some("Bearer token-2"));
    assert_eq!(requests.len(), 7);
}

#[test]
fn a_failed_operation_has_the_deepest_reason() {
    let inner = json!({"code": "AllocationFailed", "message": "We do not have sufficient capacity"});
    let details = json!([{"code": "Conflict", "message": json!({"error": inner}).to_string()}]);
    let error = json!({"code": "DeploymentFailed", "message": "At least one failed", "details": details});
    let server = azure(move |request| match request.method.as_str() {
        "PUT" => Reply::new(201, "{}").with("Azure-AsyncOperation", "/operations/1"),
        _ => reply(200, &json!({"status": "Failed", "error": error})).with("x-ms-request-id", "r-9"),
    });
    let error = client(&server).run(&step(Method::PUT, "/d", Wait::Operation)).unwrap_err();
    assert_eq!(error.cause(), Cause::Capacity);
    let text = "PUT /d: AllocationFailed: We do not have sufficient capacity (request id r-9)";
    assert_eq!(error.to_string(), text);

    let server = azure(|request| match request.method.as_str() {
        "PUT" => reply(201, &json!({"properties": {"provisioningState": "Creating"}})),
        _ => reply(200, &json!({"properties": {"provisioningState": "Canceled"}})),
    });
    let error = client(&server).run(&step(Method::PUT, "/d", Wait::Operation)).unwrap_err();
    assert_eq!(error.to_string(), "PUT /d: the operation ended as Canceled");
}

#[test]
fn deleting_what_does_not_exist_succeeds() {
    for wait in [Wait::Response, Wait::Operation, Wait::Gone] {
        let server = azure(|_| refusal(404, "ResourceGroupNotFound"));
        let answer = client(&server).run(&step(Method::DELETE, "/group", wait)).unwrap();
        assert_eq!((answer.status, sent(&server).len()), (404, 1));
    }
    // Neither a wrong subscription nor a proxy can say so.
    for wrong in [refusal(404, "SubscriptionNotFound"), Reply::new(404, "<html>")] {
        let server = azure(move |_| wrong.clone());
        let error = client(&server).run(&step(Method::DELETE, "/group", Wait::Gone)).unwrap_err();
        assert_eq!(error.status(), Some(404));
    }
    let server = azure(|_| refusal(404, "ResourceNotFound"));
    assert!(client(&server).run(&step(Method::PUT, "/group", Wait::Operation)).is_err());
}

#[test]
fn a_resource_that_survives_its_deletion_is_deleted_again() {
    let count = AtomicUsize::new(0);
    let server =
        azure(move |request| match (request.method.as_str(), count.fetch_add(1, Ordering::SeqCst)) {
            ("DELETE", _) | (_, 1) => {
                Reply::new(202, "").with("Location", "/results").with("Retry-After", "0")
            }
            (_, 2 | 5) => Reply::new(200, ""),
            (_, 3) => reply(200, &json!({"properties": {"provisioningState": "Succeeded"}})),
            (_, 6) => reply(200, &json!({"properties": {"provisioningState": "Deleting"}})),
            _ => refusal(404, "ResourceGroupNotFound"),
        });
    let answer = client(&server).run(&step(Method::DELETE, "/group", Wait::Gone)).unwrap();
    assert_eq!(answer.status, 404);
    let deletions = sent(&server).iter().filter(|request| *request == "DELETE /group").count();
    assert_eq!((deletions, sent(&server).last().unwrap().as_str()), (2, "GET /group"));
}

#[test]
fn a_batch_pool_is_gone_when_it_is_not_found() {
    let count = AtomicUsize::new(0);
    let server =
        azure(move |request| match (request.method.as_str(), count.fetch_add(1, Ordering::SeqCst)) {
            ("DELETE", _) => Reply::new(202, ""),
            (_, 1..3) => reply(200, &json!({"id": "pool", "state": "deleting"})),
            _ => reply(404, &json!({"code": "PoolNotFound", "message": {"lang": "en", "value": "gone"}})),
        });
    let mut step = step(Method::DELETE, "/pools/p", Wait::Gone);
    step.call.plane = Plane::Batch { account: "a".to_owned(), region: "r".to_owned(), endpoint: None };
    client(&server).run(&step).unwrap();
    assert_eq!(sent(&server), ["DELETE /pools/p", "GET /pools/p", "GET /pools/p", "GET /pools/p"]);
}

#[test]
fn a_repeated_request_finds_what_an_earlier_one_made() {
    // The answer to the first request was lost, and Azure already works on it.
    let count = AtomicUsize::new(0);
    let server =
        azure(move |request| match (request.method.as_str(), count.fetch_add(1, Ordering::SeqCst)) {
            (_, 0) => Reply { pieces: vec![Vec::new()], ..Reply::default() },
            ("PUT", _) => refusal(409, "DeploymentActive"),
            (_, 2) => reply(200, &json!({"properties": {"provisioningState": "Running"}})),
            _ => reply(200, &json!({"id": 1, "properties": {"provisioningState": "Succeeded"}})),
        });
    let answer = client(&server).run(&step(Method::PUT, "/deployment", Wait::Operation)).unwrap();
    assert_eq!(answer.body["id"], json!(1));

    let server = azure(|_| reply(409, &json!({"code": "JobExists", "message": {"value": "m"}})));
    let answer = client(&server).run(&step(Method::POST, "/jobs", Wait::Response)).unwrap();
    assert_eq!(answer.status, 409);

    let count = AtomicUsize::new(0);
    let server = azure(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0..5 => refusal(409, "ContainerGroupTransitioning").with("Retry-After", "0"),
        _ => Reply::new(201, "{}"),
    });
    client(&server).run(&step(Method::PUT, "/containers", Wait::Operation)).unwrap();
    assert_eq!(server.count("/containers"), 6);
}

#[test]
fn a_step_ends_with_its_timeout() {
    let server = azure(|request| match request.method.as_str() {
        "PUT" => Reply::new(201, "{}").with("Azure-AsyncOperation", "/operations/1"),
        _ => reply(200, &json!({"status": "InProgress"})).with("Retry-After", "3600"),
    });
    let step = step(Method::PUT, "/x", Wait::Operation);
    let error = client(&server).run(&step).unwrap_err();
    assert_eq!(error, AzureError::TimedOut { action: "PUT /x".to_owned(), after: Duration::from_secs(60) });
    let mut endless = step.clone();
    endless.timeout = Duration::MAX;
    endless.wait = Wait::Response;
    client(&server).run(&endless).unwrap();
}

/// Keeps what a journal would.
#[derive(Default)]
struct Journal {
    operation: Mutex<Option<Operation>>,
    states: Mutex<Vec<String>>,
}

impl StepObserver for Journal {
    fn polling(&self, operation: &Operation) {
        *self.operation.lock().unwrap() = Some(operation.clone());
    }

    fn state(&self, state: &str) {
        self.states.lock().unwrap().push(state.to_owned());
    }
}

#[test]
fn a_stored_operation_is_resumed_and_a_forgotten_one_known_by_its_resource() {
    for is_forgotten in [false, true] {
        let count = AtomicUsize::new(0);
        let server =
            azure(move |request| match (request.path.as_str(), count.fetch_add(1, Ordering::SeqCst)) {
                (_, 0) => Reply::new(202, "").with("Location", "/results?n=1").with("Retry-After", "0"),
                ("/results?n=1", 1) => {
                    Reply::new(202, "").with("Location", "/results?n=2").with("Retry-After", "3600")
                }
                ("/results?n=2", 2) if is_forgotten => refusal(404, "OperationNotFound"),
                ("/results?n=2", 2) => reply(200, &json!({"id": 1})),
                ("/account", 3) => {
                    reply(200, &json!({"id": 1, "properties": {"provisioningState": "Succeeded"}}))
                }
                _ => Reply::new(400, ""),
            });
        let (client, journal) = (client(&server), Journal::default());
        let step = step(Method::PUT, "/account", Wait::Operation);
        let error = client.run_observed(&step, &journal).unwrap_err();
        assert!(matches!(error, AzureError::TimedOut { .. }), "{error}");
        let stored = journal.operation.lock().unwrap().take().unwrap().to_secret();
        assert!(stored.expose().contains("n=2"), "the newest URL");
        let answer = client.resume(&step, Operation::from_secret(&stored).unwrap(), &journal).unwrap();
        assert_eq!(answer.body["id"], json!(1));
        let states = journal.states.into_inner().unwrap();
        assert_eq!(states.last().map(String::as_str), is_forgotten.then_some("Succeeded"));
    }
}

#[test]
fn an_operation_of_another_request_is_not_resumed() {
    let server = azure(|_| reply(200, &json!({"id": 1})));
    let other = Operation::of_resource(&Method::PUT, "https://elsewhere.example/x");
    let step = step(Method::PUT, "/x", Wait::Operation);
    client(&server).resume(&step, other, &()).unwrap();
    assert_eq!(sent(&server), ["PUT /x"]);
}
