//! Clients that leave, are slow, or send too much.

use std::net::Shutdown;
use std::sync::Mutex;
use std::sync::mpsc;

use cudock_testkit::client::{PATIENCE, eventually, get, post};
use cudock_testkit::http::Server;

use crate::support::{Gate, JSON, TestGateway, answer, echo, raw_upstream};

/// Reads until the gateway hangs up, and reports that.
fn reports_hang_up() -> (std::net::SocketAddr, mpsc::Receiver<String>) {
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(sender);
    let upstream = raw_upstream(move |stream, request| {
        let sender = sender.lock().unwrap().clone();
        sender.send(format!("got {}", request.path)).unwrap();
        let _ = std::io::copy(&mut &stream, &mut std::io::sink());
        sender.send(format!("lost {}", request.path)).unwrap();
    });
    (upstream, receiver)
}

#[test]
fn the_upstream_learns_that_a_client_has_left() {
    let (upstream, events) = reports_hang_up();
    let gateway = TestGateway::start(&[upstream], "");
    for path in ["/predict", "/other"] {
        let mut client = gateway.connect();
        client.write(&post(path, JSON, b"{\"input\":[1]}"));
        assert_eq!(events.recv_timeout(PATIENCE).unwrap(), format!("got {path}"));
        client.stream.shutdown(Shutdown::Both).unwrap();
        assert_eq!(events.recv_timeout(PATIENCE).unwrap(), format!("lost {path}"));
    }
    gateway.until("upstream_outstanding", 0);
    gateway.until("held_bytes", 0);
}

#[test]
fn a_batch_goes_on_as_long_as_one_of_its_clients_waits() {
    let gate = Gate::default();
    let own = gate.clone();
    let upstream = Server::start(move |request| {
        if request.path == "/predict" {
            own.pass();
        }
        echo(request)
    });
    let gateway = TestGateway::start(&[upstream.address()], "concurrency = 1");
    let mut first = gateway.ask("{\"input\":[0]}");
    eventually("the first request is with the server", || upstream.count("/predict") == 1);
    let (leaving, mut staying) = (gateway.ask("{\"input\":[1]}"), gateway.ask("{\"input\":[2]}"));
    gateway.until("upstream_queue_rows", 2);
    gate.open(1);
    first.receive();
    eventually("the batch is with the server", || upstream.count("/predict") == 2);
    drop(leaving);
    gateway.until("upstream_outstanding", 2);
    gate.open(1);
    assert_eq!(staying.receive().text(), answer("[2]"));
    assert_eq!(upstream.count("/predict"), 2);
}

#[test]
fn a_queued_request_whose_client_has_left_is_not_sent() {
    let gate = Gate::default();
    let own = gate.clone();
    let upstream = Server::start(move |request| {
        if request.path == "/predict" {
            own.pass();
        }
        echo(request)
    });
    let gateway = TestGateway::start(&[upstream.address()], "concurrency = 1");
    let mut first = gateway.ask("{\"input\":[0]}");
    eventually("the first request is with the server", || upstream.count("/predict") == 1);
    let (leaving, mut staying) = (gateway.ask("{\"input\":[1]}"), gateway.ask("{\"input\":[2]}"));
    gateway.until("upstream_queue_rows", 2);
    drop(leaving);
    gateway.until("upstream_queue_rows", 1);
    gate.open(2);
    first.receive();
    assert_eq!(staying.receive().text(), answer("[2]"));
    assert!(upstream.requests().iter().all(|request| !request.text().contains("[1]")));
}

#[test]
fn bodies_that_are_too_long_or_too_slow_are_rejected() {
    let upstream = Server::start(echo);
    let gateway = TestGateway::start(&[upstream.address()], "max_body = '64KiB'\nclient_timeout = '200ms'");
    for path in ["/predict", "/other"] {
        let announced =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: 100000\r\n\r\n");
        assert_eq!(gateway.send(announced.as_bytes()).status, 413, "{path}");
        let mut client = gateway.connect();
        client.write(
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{JSON}transfer-encoding: chunked\r\n\r\n")
                .as_bytes(),
        );
        client.write(format!("11000\r\n{}\r\n0\r\n\r\n", " ".repeat(0x11000)).as_bytes());
        assert_eq!(client.receive().status, 413, "{path}");
        let mut client = gateway.connect();
        client.write(
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: 100\r\n\r\n{{")
                .as_bytes(),
        );
        assert_eq!(client.receive().status, 408, "{path}");
    }
    assert_eq!(gateway.predict("{\"input\":[1]}").status, 200);
    assert_eq!(gateway.send(&get("/other", "")).status, 200);
}

#[test]
fn a_full_queue_rejects_requests_with_the_time_to_wait() {
    let (upstream, events) = reports_hang_up();
    let gateway = TestGateway::start(&[upstream], "concurrency = 1\nqueue_rows = 2");
    let _running = gateway.ask("{\"input\":[0]}");
    events.recv_timeout(PATIENCE).unwrap();
    let _queued = [gateway.ask("{\"input\":[1]}"), gateway.ask("{\"input\":[2]}")];
    gateway.until("upstream_queue_rows", 2);
    let rejected = gateway.predict("{\"input\":[3]}");
    assert_eq!(rejected.status, 429);
    assert!(rejected.header("retry-after").is_some() && rejected.header("retry-after-ms").is_some());
}

#[test]
fn a_burst_is_rejected_before_its_bodies_are_read() {
    let (upstream, events) = reports_hang_up();
    let gateway =
        TestGateway::start(&[upstream], "concurrency = 1\nqueue_rows = 1\nclient_timeout = '200ms'");
    let _running = gateway.ask("{\"input\":[0]}");
    events.recv_timeout(PATIENCE).unwrap();
    let _queued = gateway.ask("{\"input\":[1]}");
    gateway.until("upstream_queue_rows", 1);
    let head = format!("POST /predict HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: 100\r\n\r\n");
    // A rejection counts for a millisecond; later, the body would be waited for.
    eventually("the second of two requests is rejected without its body", || {
        let mut client = gateway.connect();
        client.write(&[&post("/predict", JSON, b"{\"input\":[2]}"), head.as_bytes()].concat());
        assert_eq!(client.receive().status, 429);
        client.receive().status == 429
    });
}

#[test]
fn a_deadline_ends_a_request_wherever_it_is() {
    let (upstream, events) = reports_hang_up();
    let gateway = TestGateway::start(&[upstream], "concurrency = 1");
    for path in ["/predict", "/other"] {
        let headers = format!("{JSON}x-timeout-ms: 100\r\n");
        assert_eq!(gateway.send(&post(path, &headers, b"{\"input\":[1]}")).status, 504, "{path}");
        assert_eq!(events.recv_timeout(PATIENCE).unwrap(), format!("got {path}"));
        assert_eq!(events.recv_timeout(PATIENCE).unwrap(), format!("lost {path}"));
    }
    let invalid =
        gateway.send(&post("/predict", &format!("{JSON}x-timeout-ms: soon\r\n"), b"{\"input\":[1]}"));
    assert_eq!(invalid.status, 400);
}
