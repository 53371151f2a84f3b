//! Tests network namespaces, forwarded ports and outbound connections with real processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod forward;
mod forward_process;
mod forward_udp;
mod namespace;
mod outbound;
mod support;
