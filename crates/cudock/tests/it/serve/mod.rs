//! `cudock serve` as its clients meet it: the real program, the real engine, requests over the network.
//!
//! Each module shows one of the things the server promises. Where a test needs requests to wait together, it holds the
//! engine's process still rather than hoping for a busy one; so what is shown does not depend on the machine's speed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod serve_support;
mod support;

#[path = "serve_support/answers.rs"]
mod answers;
#[path = "serve_support/deadlines.rs"]
mod deadlines;
#[path = "serve_support/directories.rs"]
mod directories;
#[path = "serve_support/ending.rs"]
mod ending;
#[path = "serve_support/engine_loss.rs"]
mod engine_loss;
#[path = "serve_support/keys.rs"]
mod keys;
#[path = "serve_support/leaving.rs"]
mod leaving;
#[path = "serve_support/limits.rs"]
mod limits;
#[path = "serve_support/manners.rs"]
mod manners;
#[path = "serve_support/mates.rs"]
mod mates;
#[path = "serve_support/memory.rs"]
mod memory;
#[path = "serve_support/models.rs"]
mod models;
#[path = "serve_support/operations.rs"]
mod operations;
#[path = "serve_support/overload.rs"]
mod overload;
#[path = "serve_support/protocol.rs"]
mod protocol;
#[path = "serve_support/random.rs"]
mod random;
#[path = "serve_support/rows.rs"]
mod rows;
#[path = "serve_support/starting.rs"]
mod starting;
#[path = "serve_support/target.rs"]
mod target;
