//! Tests the compatibility rules: single cases, packages, and whole projects.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod packages;
mod projects;
mod verdicts;
