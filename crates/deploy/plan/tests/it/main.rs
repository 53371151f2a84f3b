//! Plans as a whole: common scenarios, what holds for every request, and what other planners answer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod acceptance;
mod properties;
mod scenarios;
mod skypilot;
mod support;
