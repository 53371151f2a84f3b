//! Tests the catalog of messages: it matches what it should, nothing else, and its advice is sound.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking"
)]

mod advice;
mod catalog;
mod threads;
