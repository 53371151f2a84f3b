//! Tests the formats of requests and responses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking"
)]

mod envelope;
mod files;
mod nested;
mod numbers;
mod oip;
mod predict;
mod support;
