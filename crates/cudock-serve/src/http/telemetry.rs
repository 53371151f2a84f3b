//! Sends traces and metrics to an OpenTelemetry collector.
#![allow(clippy::cast_precision_loss, reason = "metrics are floating-point numbers")]

use std::io;
use std::sync::{Arc, Weak};

use cudock_trace::{Exporter, Metric, MetricKind};

use super::metrics::{COUNTERS, GPU_GAUGES};
use crate::service::ModelService;

/// Starts the exporter, if the settings name a collector.
pub(super) fn start(service: &Arc<ModelService>) -> io::Result<Option<Exporter>> {
    let Some(settings) = service.settings.telemetry.clone() else { return Ok(None) };
    let (weak, log) = (Arc::downgrade(service), service.settings.server.log.clone());
    let metrics = move || Weak::upgrade(&weak).map(|service| read_metrics(&service)).unwrap_or_default();
    let report = move |error: &str| log.event("telemetry_not_sent", &[("error", error)]);
    let exporter = Exporter::start(settings, Box::new(metrics), Box::new(report))?;
    Ok(Some(service.exporter.get_or_init(|| exporter).clone()))
}

/// The counters of models, and the gauges of queues and GPUs, with the names that they have for Prometheus.
fn read_metrics(service: &ModelService) -> Vec<Metric> {
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
