//! The watch in simulated time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "these are tests")]

mod activity;
mod deletion;
mod live;
mod simulation;
