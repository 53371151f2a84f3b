//! Tests reading and slimming of files with GPU code.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and a test binary has no API"
)]

mod bare;
mod build;
mod reading;
mod slimming;
