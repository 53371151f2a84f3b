//! The tables keep their rules, say what they said, and read as they should.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "figures for people, and made-up bytes"
)]

mod gpu_names;
mod meters;
mod overlays;
mod packages;
mod sizes;
mod tables;
mod truths;
mod versions;
