//! Several upstreams: balance, health and ejection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use cudock_testkit::client::get;
use cudock_testkit::http::{Reply, Server};

use crate::support::{TestGateway, answer, echo, free_address};

#[test]
fn a_dead_upstream_costs_no_request_while_another_lives() {
    let upstream = Server::start(echo);
    let gateway = TestGateway::start(&[free_address(), upstream.address()], "");
    for row in 0..20 {
        assert_eq!(gateway.predict(&format!("{{\"input\":[{row}]}}")).text(), answer(&format!("[{row}]")));
        assert_eq!(gateway.send(&get("/other", "")).status, 200);
    }
    let health = gateway.send(&get("/_gateway/health", ""));
    assert!(health.status == 200 && health.text().contains("\"degraded\""), "{}", health.text());
}

#[test]
fn an_upstream_that_fails_its_health_check_gets_no_requests() {
    let status = Arc::new(AtomicU16::new(503));
    let own = Arc::clone(&status);
    let sick = Server::start(move |request| match request.path.as_str() {
        "/healthz" => Reply::new(own.load(Ordering::SeqCst), ""),
        _ => echo(request),
    });
    let gateway = TestGateway::start(&[sick.address()], "health_path = '/healthz'\nhold = '100ms'");
    for bad in [503, 404, 302] {
        status.store(bad, Ordering::SeqCst);
        assert_eq!(gateway.predict("{\"input\":[1]}").status, 503, "{bad}");
    }
    assert_eq!(sick.count("/predict"), 0);
    status.store(204, Ordering::SeqCst);
    gateway.until("upstream_up", 1);
    assert_eq!(gateway.predict("{\"input\":[1]}").status, 200);
}

#[test]
fn a_server_without_a_health_path_is_healthy() {
    let upstream = Server::start(|request| match request.path.as_str() {
        "/predict" => echo(request),
        _ => Reply::new(404, ""),
    });
    let gateway = TestGateway::start(&[upstream.address()], "");
    assert_eq!(gateway.predict("{\"input\":[1]}").status, 200);
}

#[test]
fn an_upstream_that_keeps_failing_is_ejected() {
    let failing = Server::start(|request| match request.path.as_str() {
        "/health" => Reply::new(200, ""),
        _ => Reply::new(500, "broken"),
    });
    let good = Server::start(echo);
    let gateway = TestGateway::start(&[failing.address(), good.address()], "");
    gateway.until("upstream_up", 2);
    let mut failures = 0;
    while gateway.metric("upstream_ejections_total") < 0.5 {
        failures += usize::from(gateway.predict("{\"input\":[1]}").status == 500);
        assert!(failures <= 5);
    }
    assert_eq!(failures, 5);
    assert_eq!(gateway.predict("{\"input\":[1]}").status, 200);
}
