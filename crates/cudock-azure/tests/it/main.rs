//! Promises of `cudock-azure`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "these are tests")]

mod preflight;
