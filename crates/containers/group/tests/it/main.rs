//! Tests the reader of group files, and the sequence in which containers of a group start and stop.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod azure_samples;
mod docs;
mod faults;
mod good;
mod hostile;
mod secrets;
mod sequence;
