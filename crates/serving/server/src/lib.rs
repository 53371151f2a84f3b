//! An HTTP server that withstands hostile clients, generic over what it serves.
//!
//! HTTP/1.1 and HTTP/2 share each port, with or without TLS. Each I/O thread has a runtime of its own, and a connection
//! stays on its thread. Slow, idle and silent clients are dropped, bodies count against a memory budget as they arrive,
//! and a shutdown finishes the requests that were accepted. What a request means is up to a [`Handler`].

mod args;
mod body;
mod compression;
mod connection;
mod descriptors;
mod drain;
mod framing;
mod handler;
mod histogram;
mod host;
mod keys;
mod log;
mod memory;
mod monitor;
mod monitored_body;
mod origin;
mod prometheus;
mod rate_limit;
mod rejection;
mod request_rules;
mod resources;
mod server;
mod settings;
mod stall;
mod stream;
mod tls;
mod worker_pool;

pub use args::{API_KEYS, ServerArgs};
pub use body::RequestBody;
pub use compression::{ContentEncoding, InflateError};
pub use drain::DrainSignal;
pub use handler::{COMPUTE_STAGE, Handler, QUEUE_STAGE};
pub use histogram::{Histogram, Percentiles};
pub use keys::{ApiKeys, KeysError};
pub use log::{Log, LogFormat};
pub use memory::{Budget, Reservation, SMALL_BODY};
pub use monitor::ConnectionActivity;
pub use monitored_body::MonitoredBody;
pub use origin::Effect;
pub use prometheus::Exposition;
pub use rate_limit::RateLimiter;
pub use rejection::{HttpRejection, write_retry_after};
pub use resources::ServerResources;
pub use server::{Server, ServerError};
pub use settings::{ServerSettings, TlsFiles};
pub use stall::StallDetector;
pub use tls::TlsError;
pub use worker_pool::{MAX_INLINE_COPY, MAX_INLINE_PARSE, WorkerLost, WorkerPool};
