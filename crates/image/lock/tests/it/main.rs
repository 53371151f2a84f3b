//! Locking against a package index and a Debian archive on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod errors;
mod killed;
mod locking;
mod support;
