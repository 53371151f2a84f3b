//! The client against servers on this machine that misbehave in every way.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod downloads;
mod operations;
mod probes;
mod requests;
mod uploads;
mod websockets;

use std::time::Duration;

use cudock_http::{Client, ClientOptions, RetryPolicy};
use cudock_testkit::http::Server;

const QUICK: RetryPolicy = RetryPolicy {
    max_retries: 3,
    initial_delay: Duration::from_millis(2),
    max_delay: Duration::from_millis(20),
};

fn client() -> Client {
    Client::new(&ClientOptions { timeout: Duration::from_secs(20), ..ClientOptions::default() }).unwrap()
}

fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.host())
}
