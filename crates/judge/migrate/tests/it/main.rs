//! The crate as its users see it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod commands;
mod hostile;
mod judgement;
mod programs;
mod rewritten;
mod support;
mod templates;
