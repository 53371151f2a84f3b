//! The batcher in simulated servers: invariants and performance.
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
    reason = "simulated times are floating-point numbers"
)]

mod invariants;
mod load;
mod policy;
mod rng;
mod server;
mod throughput;
