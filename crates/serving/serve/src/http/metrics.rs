//! `GET /metrics`, for Prometheus.
#![allow(clippy::cast_precision_loss, reason = "Prometheus counts in floating point")]

use std::sync::Arc;

use cudock_server::Exposition;
use hyper::StatusCode;

use super::response::{self, HttpResponse};
use super::triton_metrics;
use crate::metrics::ModelTotals;
use crate::model::{Model, ModelFile};
use crate::service::{ModelService, ResidencyReport};
use crate::settings::DeviceReading;

type ModelCount = fn(&ModelTotals) -> u64;
type DeviceValue = fn(&DeviceReading) -> Option<f64>;

/// Name, description and value of each counter of a model.
pub(super) const COUNTERS: [(&str, &str, ModelCount); 9] = [
    ("cudock_requests_total", "Successful requests.", |totals| totals.counts.requests),
    ("cudock_rows_total", "Rows of successful requests.", |totals| totals.counts.rows),
    ("cudock_batches_total", "Batches run.", |totals| totals.counts.batches),
    ("cudock_expired_total", "Requests whose deadline passed.", |totals| totals.counts.expired),
    ("cudock_canceled_total", "Requests whose client disconnected.", |totals| totals.counts.canceled),
    ("cudock_failed_total", "Requests that failed in the engine.", |totals| totals.counts.failed),
    ("cudock_engine_restarts_total", "Engines restarted.", |totals| totals.restarts),
    ("cudock_split_batches_total", "Batches run in parts for lack of device memory.", |totals| totals.splits),
    (REJECTED, "Requests rejected because the queue or the memory budget was full.", |totals| {
        totals.counts.rejected
    }),
];

const DROPPED_SPANS: &str = "cudock_trace_spans_dropped_total";

/// The only counter that the server has, too: for requests rejected before they reach a model.
const REJECTED: &str = "cudock_refused_total";

/// Name, description and value of each gauge of a GPU.
pub(super) const GPU_GAUGES: [(&str, &str, DeviceValue); 3] = [
    ("cudock_gpu_memory_used_bytes", "Memory in use on the GPU.", |gpu| Some(gpu.memory_used as f64)),
    ("cudock_gpu_memory_total_bytes", "Memory of the GPU.", |gpu| Some(gpu.memory_total as f64)),
    ("cudock_gpu_utilization", "Share of time a kernel ran.", |gpu| gpu.utilization),
];

/// `GET /metrics`
pub(crate) fn metrics(service: &ModelService) -> HttpResponse {
    let known = service.known();
    let models: Vec<(&Arc<Model>, ModelTotals)> =
        known.iter().map(|model| (model, model.queue.metrics.totals())).collect();
    let mut page = Exposition::default();
    for (name, help, count) in COUNTERS {
        page.family(name, "counter", help);
        for (model, totals) in &models {
            page.sample(name, &model.labels(), count(totals) as f64);
        }
        if name == REJECTED {
            let rejected = service.resources.budget.rejected();
            page.sample(name, &[("model", ""), ("version", "")], rejected as f64);
        }
    }
    page.family("cudock_queue_rows", "gauge", "Queued rows.");
    for (model, _) in &models {
        page.sample("cudock_queue_rows", &model.labels(), model.queue.status().rows as f64);
    }
    page.family(
        "cudock_max_batch_rows",
        "gauge",
        "Most rows of a batch: the setting, or what fits into memory.",
    );
    for (model, _) in &models {
        let rows = model.queue.row_limit().unwrap_or(usize::MAX).min(model.max_rows());
        page.sample("cudock_max_batch_rows", &model.labels(), rows as f64);
    }
    page.family("cudock_model_ready", "gauge", "Whether an engine runs the model.");
    for (model, _) in &models {
        page.sample("cudock_model_ready", &model.labels(), f64::from(model.is_ready()));
    }
    page.family("cudock_request_seconds", "histogram", "Time of successful requests by stage.");
    for (model, totals) in &models {
        let stages = &totals.stages;
        for (stage, histogram) in
            [("queue", &stages.queue), ("compute", &stages.compute), ("total", &stages.total)]
        {
            let [name, version] = model.labels();
            page.histogram("cudock_request_seconds", &[name, version, ("stage", stage)], histogram);
        }
    }
    write_residency(service, &mut page);
    let readings = (service.settings.read_devices)();
    for (name, help, value) in GPU_GAUGES {
        page.family(name, "gauge", help);
        for gpu in &readings {
            if let Some(value) = value(gpu) {
                page.sample(name, &[("gpu", &gpu.gpu.to_string()), ("name", &gpu.name)], value);
            }
        }
    }
    triton_metrics::write(&mut page, &models, &readings);
    if let Some(exporter) = service.exporter() {
        page.family(DROPPED_SPANS, "counter", "Spans of traces that were not sent.");
        page.sample(DROPPED_SPANS, &[], exporter.dropped() as f64);
    }
    page.family("cudock_held_bytes", "gauge", "Bytes of requests being read, queued or running.");
    page.sample("cudock_held_bytes", &[], service.resources.budget.held() as f64);
    response::full(StatusCode::OK, "text/plain; version=0.0.4", page.into_text())
}

type ResidencyValue = fn(&ResidencyReport) -> u64;

/// Name, kind, description and value of what is known about the memory of each model.
const RESIDENCY: [(&str, &str, &str, ResidencyValue); 3] = [
    ("cudock_model_loads_total", "counter", "Times the model was loaded.", |report| report.loads),
    ("cudock_model_unloads_total", "counter", "Times the model was unloaded.", |report| report.unloads),
    ("cudock_model_memory_bytes", "gauge", "Memory of the loaded model on each of its devices.", |report| {
        report.memory.unwrap_or(0)
    }),
];

fn write_residency(service: &ModelService, page: &mut Exposition) {
    let models = service.all();
    let reports: Vec<(&ModelFile, ResidencyReport)> =
        models.iter().map(|served| (served.file(), service.residency(&served.file().id()))).collect();
    for (name, kind, help, value) in RESIDENCY {
        page.family(name, kind, help);
        for (file, report) in &reports {
            let labels = [("model", &*file.name), ("version", &*file.version)];
            page.sample(name, &labels, value(report) as f64);
        }
    }
    let loaded = models.iter().filter(|served| served.is_resident()).count();
    page.family("cudock_models_loaded", "gauge", "Loaded models.");
    page.sample("cudock_models_loaded", &[], loaded as f64);
}
