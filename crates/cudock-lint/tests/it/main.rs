//! Tests of the linter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod discovery;
mod docs;
mod examples;
mod fixes;
mod ignores;
mod settings;
mod system;
