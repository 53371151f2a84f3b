//! Upstreams that are scaled to zero, and the shutdown.

use cudock_testkit::client::{eventually, get, post};
use cudock_testkit::http::Server;

use crate::support::{Gate, JSON, TestGateway, answer, echo, free_address};

#[test]
fn requests_wait_for_an_upstream_that_comes_up() {
    let address = free_address();
    let gateway = TestGateway::start(&[address], "");
    let mut predicting = gateway.ask("{\"input\":[1]}");
    let mut other = gateway.connect();
    other.write(&post("/other", "", b"body"));
    gateway.until("held_requests", 2);
    let upstream = Server::start_at(address, echo);
    assert_eq!(predicting.receive().text(), answer("[1]"));
    assert_eq!(other.receive().text(), "body");
    // To zero and back once more.
    drop(upstream);
    let mut again = gateway.ask("{\"input\":[2]}");
    gateway.until("held_requests", 1);
    let _upstream = Server::start_at(address, echo);
    assert_eq!(again.receive().text(), answer("[2]"));
    gateway.until("held_requests", 0);
}

#[test]
fn requests_that_are_not_held_are_queued_all_the_same() {
    let gate = Gate::default();
    let own = gate.clone();
    let upstream = Server::start(move |request| {
        if request.path == "/predict" {
            own.pass();
        }
        echo(request)
    });
    let gateway = TestGateway::start(&[upstream.address()], "concurrency = 1\nhold = '0s'");
    gateway.until("upstream_up", 1);
    let mut clients: Vec<_> = (0..3).map(|row| gateway.ask(&format!("{{\"input\":[{row}]}}"))).collect();
    eventually("the first request is with the server", || upstream.count("/predict") == 1);
    gate.open(100);
    for (row, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.receive().text(), answer(&format!("[{row}]")));
    }
}

#[test]
fn the_first_request_that_waits_wakes_the_upstream_once() {
    let directory = tempfile::tempdir().unwrap();
    let woken = directory.path().join("woken");
    let address = free_address();
    let command = format!("wake = ['mkdir', '{}']", woken.display());
    let gateway = TestGateway::start(&[address], &command);
    assert_eq!(gateway.send(&get("/_gateway/ready", "")).status, 200, "it can hold requests");
    assert!(!woken.exists(), "nothing waits yet");
    let mut clients: Vec<_> = (0..4).map(|row| gateway.ask(&format!("{{\"input\":[{row}]}}"))).collect();
    eventually("the command has run", || woken.exists());
    let _upstream = Server::start_at(address, echo);
    for (row, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.receive().text(), answer(&format!("[{row}]")));
    }
    gateway.until("wakes_total", 1);
}

#[test]
fn an_upstream_without_requests_is_stopped_once_until_the_next_request() {
    let directory = tempfile::tempdir().unwrap();
    let stops = directory.path().join("stops");
    let upstream = Server::start(echo);
    let command = format!("['sh', '-c', 'echo stop >> {}']", stops.display());
    let gateway =
        TestGateway::start(&[upstream.address()], &format!("idle_after = '100ms'\nidle_stop = {command}"));
    let lines = || std::fs::read_to_string(&stops).map_or(0, |text| text.lines().count());
    for row in 0..3 {
        assert_eq!(gateway.predict(&format!("{{\"input\":[{row}]}}")).status, 200);
        eventually("the command has run", || lines() > row);
        // Probes are not requests.
        assert_eq!(gateway.send(&get("/health", "")).status, 200);
    }
    assert_eq!(lines(), 3);
}

#[test]
fn a_probe_is_not_held_and_wakes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let woken = directory.path().join("woken");
    let gateway = TestGateway::start(&[free_address()], &format!("wake = ['mkdir', '{}']", woken.display()));
    assert_eq!(gateway.send(&get("/health", "")).status, 503);
    gateway.until("wakes_total", 0);
}

#[test]
fn a_shutdown_answers_held_requests_and_finishes_those_that_are_sent() {
    let gate = Gate::default();
    let own = gate.clone();
    let upstream = Server::start(move |request| {
        if request.path == "/predict" {
            own.pass();
        }
        echo(request)
    });
    let gateway = TestGateway::start(&[upstream.address()], "");
    let mut sent = gateway.ask("{\"input\":[1]}");
    eventually("the request is with the server", || upstream.count("/predict") == 1);
    let holding = TestGateway::start(&[free_address()], "");
    let mut held = holding.connect();
    held.write(&post("/predict", JSON, b"{\"input\":[1]}"));
    holding.until("held_requests", 1);
    gateway.begin_drain();
    holding.begin_drain();
    let response = held.receive();
    assert!(response.status == 503 && response.text().contains("shutting down"), "{}", response.text());
    gate.open(1);
    assert_eq!(sent.receive().text(), answer("[1]"));
}
