//! Requests share batches, and only their own failures.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;

use crate::engine::{FATAL, HELD, LETHAL, POISON};
use crate::support::{TestServer, eventually, request};

/// A server whose engine is occupied until it is released.
fn occupied() -> Arc<TestServer> {
    let server = Arc::new(TestServer::start(|_| {}));
    server.predict(HELD);
    eventually("the request runs", || server.control.held() == 1);
    server
}

#[test]
fn requests_that_arrive_while_the_engine_is_busy_share_a_batch() {
    let server = occupied();
    let clients: Vec<_> = [1.0, 2.0, 3.0, 4.0].map(|value| server.predict(value)).into();
    eventually("they are queued", || server.metric("cudock_queue_rows") == 4);
    server.control.release();
    for (client, value) in clients.into_iter().zip([2.0, 4.0, 6.0, 8.0]) {
        assert_eq!(client.join().unwrap(), (200, json!([[value, 2.0]])));
    }
    eventually("all are counted", || server.metric("cudock_requests_total") == 5);
    assert_eq!((server.metric("cudock_batches_total"), server.metric("cudock_rows_total")), (2, 5));
}

#[test]
fn a_request_that_fails_does_not_fail_the_others_of_its_batch() {
    let server = occupied();
    let clients: Vec<_> = [1.0, POISON, 3.0].map(|value| server.predict(value)).into();
    eventually("they are queued", || server.metric("cudock_queue_rows") == 3);
    server.control.release();
    let statuses: Vec<u16> = clients.into_iter().map(|client| client.join().unwrap().0).collect();
    assert_eq!(statuses, [200, 500, 200]);
    assert_eq!(server.metric("cudock_failed_total"), 1);
}

#[test]
fn an_engine_that_dies_is_replaced_and_its_requests_run_again() {
    let server = Arc::new(TestServer::start(|_| {}));
    let clients = [FATAL, 1.0].map(|value| server.predict(value));
    let outcomes = clients.map(|client| client.join().unwrap());
    assert_eq!(outcomes, [(200, json!([[FATAL * 2.0, 2.0]])), (200, json!([[2.0, 2.0]]))]);
    assert_eq!(server.metric("cudock_engine_restarts_total"), 1);
    assert_eq!(server.control.starts.load(Ordering::SeqCst), 2);
}

#[test]
fn the_batch_of_an_engine_that_died_runs_again_as_a_whole() {
    let server = occupied();
    let clients: Vec<_> = [1.0, FATAL, 3.0].map(|value| server.predict(value)).into();
    eventually("they are queued", || server.metric("cudock_queue_rows") == 3);
    server.control.release();
    let statuses: Vec<u16> = clients.into_iter().map(|client| client.join().unwrap().0).collect();
    assert_eq!(statuses, [200; 3]);
    assert_eq!(server.metric("cudock_engine_restarts_total"), 1);
    eventually("all are counted", || server.metric("cudock_requests_total") == 4);
    assert_eq!(server.metric("cudock_batches_total"), 2, "the first request, and the others together");
}

#[test]
fn a_request_that_kills_every_engine_fails_alone_after_its_batch_ran_again() {
    let server = occupied();
    let clients: Vec<_> = [1.0, LETHAL, 3.0].map(|value| server.predict(value)).into();
    eventually("they are queued", || server.metric("cudock_queue_rows") == 3);
    server.control.release();
    let statuses: Vec<u16> = clients.into_iter().map(|client| client.join().unwrap().0).collect();
    assert_eq!(statuses, [200, 500, 200]);
    assert_eq!(server.metric("cudock_failed_total"), 1);
    // With its batch, again with its batch, alone; the last one is counted after the response.
    eventually("three engines are replaced", || server.metric("cudock_engine_restarts_total") == 3);
}

#[test]
fn the_request_of_a_client_that_left_does_not_run() {
    let server = occupied();
    let mut leaving = server.connect();
    let body = json!({ "input": [[1.0, 1.0]] }).to_string();
    leaving.write_all(request("POST", "/predict", "", &body).as_bytes()).unwrap();
    eventually("it is queued", || server.metric("cudock_queue_rows") == 1);
    drop(leaving);
    eventually("it is withdrawn", || server.metric("cudock_canceled_total") == 1);
    server.control.release();
    eventually("the other request is finished", || server.metric("cudock_requests_total") == 1);
    assert_eq!(server.metric("cudock_rows_total"), 1);
}
