//! Follows requests from server to server, and reports them to an OpenTelemetry collector.
//!
//! A request that arrives with a `traceparent` header continues the trace of its client; see [`TraceContext`]. A server
//! makes a [`RequestTrace`] of each request, notes the stages of its work, and hands it to the [`Exporter`] at the end.
//! The exporter sends on a thread of its own, from a queue of fixed size: what does not fit is dropped and counted, and no
//! request ever waits for a collector.
//!
//! ```
//! use cudock_trace::{RequestTrace, Sampler};
//!
//! let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
//! let trace = RequestTrace::begin(Some(header.as_bytes()), None, Sampler::default());
//! assert_eq!(trace.id().to_string(), "0af7651916cd43dd8448eb211c80319c");
//! // What a gateway sends to the next server.
//! assert!(trace.traceparent().starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
//! ```

mod context;
mod exporter;
mod messages;
mod request;
mod sampler;
mod settings;

pub use context::{SpanId, TRACEPARENT, TRACESTATE, TraceContext, TraceId};
pub use exporter::{Exporter, Metric, MetricKind, ReadMetrics, ReportError};
pub use request::RequestTrace;
pub use sampler::Sampler;
pub use settings::{ExportError, ExportSettings};
