//! The server with real sockets, and without models.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

mod connections;
mod framing;
mod http2;
mod origins;
mod requests;
mod shutdown;
mod support;
mod tls;
