//! The open loop: latency counts from the time a request was meant to be sent.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cudock_loadgen::{Arrivals, Load, LoadSettings};
use cudock_testkit::http::{Reply, Then};

use crate::support::{reply, request, run, server, settings};

fn open(rate: f64) -> Load {
    Load::Open { rate, arrivals: Arrivals::Constant }
}

/// A server that responses at once, but once, a second after its first request, makes all clients wait for a while.
fn stalling(stall: Duration) -> std::net::SocketAddr {
    let first = OnceLock::new();
    server(move |_| {
        let since = first.get_or_init(Instant::now).elapsed();
        let begin = Duration::from_secs(1);
        let delay = if since < begin { Duration::ZERO } else { (begin + stall).saturating_sub(since) };
        reply(200, "{}").after(delay)
    })
}

#[test]
fn a_stall_counts_for_all_requests_scheduled_meanwhile() {
    let stall = Duration::from_millis(600);
    let long = |address, load| LoadSettings { duration: Duration::from_secs(2), ..settings(address, load) };
    let address = stalling(stall);
    let open = run(&long(address, open(200.0)), &[request(address)]);
    // 600 ms of 2 s: three of ten requests fall into it, and of those one of six waits 500 ms or longer.
    assert!(open.latency.p99_ms >= 500.0, "{open:?}");
    assert!(open.latency.p90_ms >= 300.0, "{open:?}");
    let address = stalling(stall);
    let closed = run(&long(address, Load::Closed { clients: 1 }), &[request(address)]);
    // One client saw the same stall once, and its percentiles hide it.
    assert!(closed.latency.max_ms >= 500.0, "{closed:?}");
    assert!(closed.latency.p90_ms < open.latency.p90_ms, "{closed:?}");
}

#[test]
fn waiting_for_a_free_connection_counts() {
    let address = server(|_| reply(200, "{}").after(Duration::from_millis(50)));
    let one = LoadSettings { connections: 1, ..settings(address, open(100.0)) };
    let report = run(&one, &[request(address)]);
    // One connection gives 20 responses a second: the last of 80 requests waits for three seconds.
    assert_eq!((report.requests, report.latency.count, report.connections), (80, 80, 1), "{report:?}");
    assert!(report.latency.p99_ms >= 2500.0, "{report:?}");
    assert!(report.sent_late.unwrap().p99_ms >= 2500.0);
    // What comes in the grace period is not counted as goodput.
    assert!(report.goodput_per_second <= 21.5, "{}", report.goodput_per_second);
}

#[test]
fn requests_without_a_response_are_counted() {
    let address = server(|_| reply(200, "{}").after(Duration::from_millis(100)));
    let short =
        LoadSettings { connections: 1, grace: Duration::from_millis(200), ..settings(address, open(100.0)) };
    let report = run(&short, &[request(address)]);
    assert_eq!(report.requests, 80);
    assert!(report.unanswered >= 60, "{report:?}");
}

#[test]
fn connections_are_made_as_they_are_needed() {
    let address = server(|_| reply(200, "{}").after(Duration::from_millis(100)));
    let report = run(&settings(address, open(200.0)), &[request(address)]);
    // 200 a second that take a tenth each keep twenty connections busy.
    assert!((20..=64).contains(&report.connections), "{}", report.connections);
    assert_eq!(report.requests, 160);
    assert_eq!(report.latency.count, 160, "{report:?}");
}

#[test]
fn a_connection_closed_while_idle_loses_no_request() {
    let address = server(|_| Reply { then: Then::HangUp, ..reply(200, "{}") });
    let report = run(&settings(address, open(50.0)), &[request(address)]);
    assert_eq!(report.requests, 40);
    // One that is sent before the end of its connection is seen may be lost.
    assert!(report.latency.count >= 20, "{report:?}");
}

#[test]
fn poisson_arrivals_offer_the_rate_over_all_threads() {
    let address = server(|_| reply(200, "{}"));
    let load = Load::Open { rate: 1000.0, arrivals: Arrivals::Poisson };
    let report = run(&LoadSettings { threads: 2, ..settings(address, load) }, &[request(address)]);
    assert!((650..950).contains(&report.requests), "{}", report.requests);
}

#[test]
fn an_invalid_rate_is_rejected() {
    let address = server(|_| reply(200, "{}"));
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(cudock_loadgen::run(&settings(address, open(rate)), &[request(address)]).is_err());
    }
}
