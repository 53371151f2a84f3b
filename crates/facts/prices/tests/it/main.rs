//! Renewing prices from a list that answers well, badly and with malice.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod failing;
mod list;
mod merging;
mod paging;
mod reading;
mod resuming;
