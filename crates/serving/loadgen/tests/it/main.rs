//! Tests the load generator against servers of various behavior.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and a test binary has no API"
)]

mod closed;
mod open;
mod plot;
mod support;
