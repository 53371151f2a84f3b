//! The inference server over real sockets, with an engine that needs no library.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

mod batches;
mod crashes;
mod device;
mod dialects;
mod engine;
mod openapi;
mod origins;
mod residency;
mod routes;
mod support;
mod telemetry;
mod triton_metrics;
