//! The batcher in simulated servers: invariants and performance.

mod invariants;
mod load;
mod policy;
mod rng;
mod server;
mod throughput;
