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
#[path = "plan/forms.rs"]
mod forms;
#[path = "plan/planned.rs"]
mod planned;
#[path = "plan/refusals.rs"]
mod refusals;
#[path = "plan/scenarios.rs"]
mod scenarios;
