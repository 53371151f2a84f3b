//! Tests the registry client against servers that misbehave.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod blobs;
mod daemon;
mod manifests;
mod sign_in;
mod support;
