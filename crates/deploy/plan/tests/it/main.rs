//! Plans as a whole: the scenarios people come with, what holds whatever is asked, and what others answer.
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
