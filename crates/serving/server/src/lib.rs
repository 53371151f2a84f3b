//! An HTTP server that withstands hostile clients, generic over what it serves.
//!
//! HTTP/1.1 and HTTP/2 share each port, with or without TLS. Each I/O thread has a runtime of its own, and a connection
//! stays on its thread. Slow, idle and silent clients are dropped, bodies count against a memory budget as they arrive,
//! and a shutdown finishes the requests that were accepted. What a request means is up to a [`Handler`].

mod connection;
mod handler;
mod limits;
mod metrics;
mod options;
mod request;
mod resources;
mod server;
mod settings;
mod shared;

pub use connection::drain::DrainSignal;
pub use connection::monitor::ConnectionActivity;
pub use connection::monitored_body::MonitoredBody;
pub use connection::stall::StallDetector;
pub use connection::tls::TlsError;
pub use handler::{COMPUTE_STAGE, Handler, QUEUE_STAGE};
pub use limits::memory::{Budget, Reservation, SMALL_BODY};
pub use limits::rate_limit::RateLimiter;
pub use limits::worker_pool::{MAX_INLINE_COPY, MAX_INLINE_PARSE, WorkerLost, WorkerPool};
pub use metrics::histogram::{Histogram, Percentiles};
pub use metrics::log::{Log, LogFormat};
pub use metrics::prometheus::Exposition;
pub use options::{API_KEYS, ServerOptions};
pub use request::body::RequestBody;
pub use request::compression::InflateError;
pub use request::content_encoding::ContentEncoding;
pub use request::keys::{ApiKeys, KeysError};
pub use request::origin::Effect;
pub use request::rejection::{HttpRejection, write_retry_after};
pub use resources::ServerResources;
pub use server::{Server, ServerError};
pub use settings::{ServerSettings, TlsFiles};
