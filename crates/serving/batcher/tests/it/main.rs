//! Tests the batching rules one at a time, and as a whole in simulated servers.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and a test binary has no API"
)]

mod behavior;
mod simulation;
