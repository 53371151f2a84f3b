//! `cudock plan` as a user types it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]

mod support;

#[path = "plan/charts.rs"]
mod charts;
#[path = "plan/examples.rs"]
mod examples;
#[path = "plan/invalid_input.rs"]
mod invalid_input;
#[path = "plan/reports.rs"]
mod reports;
#[path = "plan/scenarios.rs"]
mod scenarios;
