//! Tests of the crate's promises.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod hostile;
mod options;
mod reference;
mod support;
mod text;
