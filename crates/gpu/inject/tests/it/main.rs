//! Tests the injection of a driver into containers.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and a test binary has no API"
)]

mod cdi;
mod driver;
mod edits;
mod ld_cache;
mod podman;
mod prepare_root;
mod support;
