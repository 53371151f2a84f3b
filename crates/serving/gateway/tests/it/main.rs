//! The gateway with real sockets, in front of servers that misbehave.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

mod batching;
mod clients;
mod copies;
mod faults;
mod forwarding;
mod frozen;
mod generated;
mod holding;
mod origins;
mod rows;
mod servers;
mod streams;
mod support;
mod upstreams;
