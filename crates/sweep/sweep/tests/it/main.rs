//! The promises of a sweep: configuration, samplers, policies, limits, and a journal that survives anything.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking"
)]

mod config;
mod journal;
mod policies;
mod samplers;
mod simulation;
mod state;
mod support;
