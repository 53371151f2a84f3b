//! Tests the readers of Dockerfiles and of Python environment files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "a test fails by panicking"
)]

mod dockerfile;
mod environments;
