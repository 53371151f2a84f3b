//! The batcher in simulated servers: what it must never do, and how well it does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    unreachable_pub,
    reason = "simulated times are real numbers"
)]

mod invariants;
mod load;
mod policy;
mod rng;
mod throughput;
mod world;
