//! `cudock up`, `down` and `groups` with real containers, as a user types them.
//!
//! They need root and a static busybox, from which a root file system is made; where one is missing they say so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod groups_support;
mod support;
