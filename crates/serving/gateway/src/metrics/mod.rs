//! Metrics for Prometheus.

mod counters;
mod exposition;

pub(crate) use self::counters::{GatewayMetrics, RequestKind, UpstreamMetrics};
pub(crate) use self::exposition::exposition;
