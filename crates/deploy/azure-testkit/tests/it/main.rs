//! The stand-in with plain requests: does it behave as Azure does?
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod batch;
mod client;
mod deployments;
mod faults;
mod reaper;
mod services;
mod wire;
