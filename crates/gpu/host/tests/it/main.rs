//! Tests the diagnosis of hosts.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking, and a test binary has no API"
)]
mod containers;
mod driver;
mod frameworks;
mod hosts;
mod libraries;
mod nvml;
mod python;
mod support;
