//! The client, and preflight, against servers on this machine that answer as Azure does, and as it should not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod certificates;
mod operations;
mod paging;
mod preflight;
mod recordings;
mod retries;
mod secrets;
mod sign_in;
mod support;
