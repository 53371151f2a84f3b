//! Test servers with various behaviors, and runs against them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cudock_loadgen::{Load, LoadReport, LoadRequest, LoadSettings, ServerUrl};
use cudock_testkit::http::{Reply, Server};

/// A reply after which the connection stays open.
pub fn reply(status: u16, body: &str) -> Reply {
    Reply::new(status, body).keep_alive()
}

/// Starts a server; `response` gets the index of the request, from zero.
pub fn server(response: impl Fn(u64) -> Reply + Send + Sync + 'static) -> SocketAddr {
    let count = AtomicU64::new(0);
    Server::run_forever(move |_| response(count.fetch_add(1, Ordering::SeqCst)))
}

pub fn target(address: SocketAddr) -> ServerUrl {
    format!("http://{address}").parse().unwrap()
}

/// One small request.
pub fn request(address: SocketAddr) -> LoadRequest {
    LoadRequest::post(&target(address), "/predict", &[], b"{\"input\": [1]}", 1)
}

pub fn settings(address: SocketAddr, load: Load) -> LoadSettings {
    LoadSettings {
        warm_up: Duration::from_millis(100),
        duration: Duration::from_millis(800),
        grace: Duration::from_secs(20),
        connections: 64,
        check_every: 0,
        ..LoadSettings::new(address, load)
    }
}

pub fn run(settings: &LoadSettings, requests: &[LoadRequest]) -> LoadReport {
    let report = cudock_loadgen::run(settings, requests).unwrap();
    let counted = report.latency.count
        + report.refused.count
        + report.failed.count
        + report.broken_count()
        + report.unanswered;
    assert_eq!(counted, report.requests, "every request comes to one end: {report:?}");
    report
}
