//! The metrics for an OpenTelemetry collector.
#![allow(clippy::cast_precision_loss, reason = "metrics are floating-point numbers")]

use std::sync::{Arc, Weak};

use cudock_trace::{Metric, MetricKind, ReadMetrics};

use super::metrics::{COUNTERS, GPU_GAUGES};
use crate::service::ModelService;

/// Reads the metrics of a server as long as it runs.
pub(super) fn metrics(service: &Arc<ModelService>) -> ReadMetrics {
    let service = Arc::downgrade(service);
    Box::new(move || Weak::upgrade(&service).map(|service| read(&service)).unwrap_or_default())
}

/// The counters of models, and the gauges of queues and GPUs, with the names that they have for Prometheus.
fn read(service: &ModelService) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for model in service.known() {
        let attributes = || vec![("model", model.name().to_owned()), ("version", model.version().to_owned())];
        let totals = model.queue.metrics.totals();
        metrics.extend(COUNTERS.map(|(name, description, count)| Metric {
            name,
            description,
            kind: MetricKind::Counter,
            attributes: attributes(),
            value: count(&totals) as f64,
        }));
        metrics.push(Metric {
            name: "cudock_queue_rows",
            description: "Queued rows.",
            kind: MetricKind::Gauge,
            attributes: attributes(),
            value: model.queue.status().rows as f64,
        });
    }
    for gpu in (service.settings.read_devices)() {
        let gauges = GPU_GAUGES.into_iter().filter_map(|(name, description, value)| {
            let attributes = vec![("gpu", gpu.gpu.to_string()), ("name", gpu.name.clone())];
            Some(Metric { name, description, kind: MetricKind::Gauge, attributes, value: value(&gpu)? })
        });
        metrics.extend(gauges);
    }
    metrics
}
