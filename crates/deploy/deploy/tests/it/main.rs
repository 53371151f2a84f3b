//! Tests the promises of deployments over a cloud that is scripted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod accounts;
mod cost;
mod crashes;
mod disk;
mod gc;
mod jobs;
mod journal;
mod ps;
mod support;
