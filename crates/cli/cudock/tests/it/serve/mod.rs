//! `cudock serve` as its clients meet it: the real program, the real engine, requests over the network.
//!
//! Each module tests one promise of the server. Where a test needs requests to wait together, it holds the
//! engine's process still rather than hoping for a busy one, so the result does not depend on the machine's speed.

mod answers;
mod deadlines;
mod directories;
mod ending;
mod engine_loss;
mod images;
mod keys;
mod leaving;
mod limits;
mod manners;
mod many_models;
mod mates;
mod memory;
mod models;
mod operations;
mod overload;
mod precision;
mod protocol;
mod python;
mod random;
mod rows;
mod starting;
mod target;
mod texts;
