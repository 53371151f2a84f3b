//! The tables keep their rules, have the expected contents, and are read as they should.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking"
)]

mod gpu_names;
mod meters;
mod overlays;
mod packages;
mod sizes;
mod tables;
mod truths;
mod versions;
