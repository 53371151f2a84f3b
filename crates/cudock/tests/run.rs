//! `cudock run` and the verbs beside it with real containers, as a user types them.
//!
//! They need root, control groups, overlayfs and a static busybox, of which images are made; where one is missing they
//! say so. Each test has a folder and a control group of its own, and fails if anything is left in them at its end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod containers;
mod join_trace;
mod support;
