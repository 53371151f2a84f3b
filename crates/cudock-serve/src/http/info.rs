//! Information about server and models, for probes, Prometheus, the page and the Open Inference Protocol.

use cudock_server::HttpRejection;
use cudock_tensor::TensorSpec;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::response::{self, HttpResponse};
use super::route::ModelName;
use crate::metrics::{Exposition, Percentiles};
use crate::model::Model;
use crate::page::status::{
    BatchCount, DeviceStatus, Latencies, ModelState, ModelStatus, PercentileStatus, QueueStatus,
    RequestTotals, ServerState, ServerStatus, StatusReport,
};
use crate::service::ModelService;
use crate::{ServeError, grpc};

/// The state of the server, and the reason if it is not healthy.
fn state(service: &ModelService) -> (ServerState, Option<String>) {
    if service.is_draining() {
        return (ServerState::Draining, Some("the server is shutting down".to_owned()));
    }
    if service.is_loading() {
        return (ServerState::Starting, Some("models are being loaded".to_owned()));
    }
    if service.resources.budget.is_exhausted() {
        return (ServerState::Degraded, Some("the memory budget is exhausted".to_owned()));
    }
    let models = service.loaded();
    let degraded = models
        .iter()
        .find_map(|model| model.degraded().map(|reason| format!("model `{}`: {reason}", model.name())))
        .or_else(|| {
            let failures = service.failures();
            let (name, version, reason) = failures.first()?;
            Some(format!("model `{name}` version {version} is not loaded: {reason}"))
        });
    match degraded {
        Some(reason) => (ServerState::Degraded, Some(reason)),
        None => (ServerState::Healthy, None),
    }
}

/// `GET /health`: 200 while requests are processed, even if degraded; 503 otherwise.
pub(crate) fn health(service: &ModelService) -> HttpResponse {
    let (state, reason) = state(service);
    let models: Vec<Value> = service
        .loaded()
        .iter()
        .map(|model| {
            let health = model.health();
            json!({
                "name": model.name(),
                "version": model.version(),
                "ready": model.is_ready(),
                "device": &*model.device_name(),
                "provider": health.devices.first().map(|device| device.provider),
                "engine": health.devices.first().map(|device| device.engine.clone()),
                "engine_processes": health.processes,
                "reason": model.degraded(),
            })
        })
        .collect();
    let readings = (service.settings.read_devices)();
    let device = service.loaded().first().map(|model| model.device_name().to_string());
    let memory =
        readings.first().map(|reading| json!({"used": reading.memory_used, "total": reading.memory_total}));
    let gpu_name = service
        .loaded()
        .iter()
        .flat_map(|model| model.health().devices)
        .find(|device| device.provider.is_gpu())
        .map(|device| device.name)
        .or_else(|| readings.first().map(|reading| reading.name.clone()));
    let status = if service.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let state = match state {
        ServerState::Healthy => "healthy",
        ServerState::Degraded if service.is_ready() => "degraded",
        ServerState::Degraded => "unhealthy",
        ServerState::Starting => "starting",
        ServerState::Draining => "draining",
    };
    response::json(
        status,
        &json!({
            "status": state, "reason": reason, "device": device, "gpu_available": gpu_name.is_some(),
            "gpu_name": gpu_name, "gpu_memory": memory, "models": models,
            "version": env!("CARGO_PKG_VERSION"),
        }),
    )
}

/// 200 or 503, for probes.
pub(crate) fn probe(what: &str, yes: bool) -> HttpResponse {
    let status = if yes { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    response::json(status, &json!({ what: yes }))
}

/// `GET /status`
pub(crate) fn status(service: &ModelService) -> Result<HttpResponse, ServeError> {
    let (state, reason) = state(service);
    let models = service.loaded();
    let mut devices: Vec<DeviceStatus> = (service.settings.read_devices)()
        .into_iter()
        .map(|reading| DeviceStatus {
            name: reading.name,
            memory_used: Some(reading.memory_used),
            memory_total: Some(reading.memory_total),
            utilisation: reading.utilisation,
        })
        .collect();
    if devices.is_empty() {
        devices.push(cpu_status());
    }
    let report = StatusReport {
        schema: 1,
        server: ServerStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: service.uptime().as_secs_f64(),
            state,
            reason,
        },
        models: models
            .iter()
            .map(|model| model_status(model))
            .chain(
                service
                    .failures()
                    .into_iter()
                    .map(|(name, version, reason)| ModelStatus::failed(name, version, reason)),
            )
            .collect(),
        devices,
    };
    let text = serde_json::to_vec(&report).map_err(|error| ServeError::Engine(error.to_string()))?;
    Ok(response::full(StatusCode::OK, "application/json", text))
}

fn model_status(model: &Model) -> ModelStatus {
    let health = model.health();
    let (totals, recent) = (model.totals(), model.recent());
    let (rows, requests) = model.queued();
    let stage = |percentiles: Percentiles| {
        let Percentiles { p50, p90, p99 } = percentiles;
        (p99 > 0.0).then_some(PercentileStatus { p50, p90, p99 })
    };
    ModelStatus {
        name: model.name().to_owned(),
        version: model.version().to_owned(),
        state: if model.is_ready() { ModelState::Ready } else { ModelState::Restarting },
        device: model.device_name().to_string(),
        provider: health.devices.first().map(|device| device.provider),
        degraded: model.degraded(),
        batched: model.signature().batched,
        inputs: model.signature().inputs.clone(),
        outputs: model.signature().outputs.clone(),
        max_batch: model.max_rows(),
        try_range: model.settings().try_range.map(|(low, high)| [low, high]),
        totals: RequestTotals {
            requests: totals.requests,
            rows: totals.rows,
            batches: totals.batches,
            rejected: totals.rejected,
            failed: totals.failed,
            canceled: totals.canceled,
            expired: totals.expired,
        },
        queue: QueueStatus { rows, requests },
        latency_ms: Latencies {
            queue: stage(recent.queue),
            compute: stage(recent.compute),
            total: stage(recent.total),
        },
        batch_sizes: totals.sizes.iter().map(|&(rows, count, _)| BatchCount { rows, count }).collect(),
    }
}

/// Memory of a machine without a GPU.
fn cpu_status() -> DeviceStatus {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    };
    let total = bytes("MemTotal:");
    DeviceStatus {
        name: "cpu".to_owned(),
        memory_used: total.zip(bytes("MemAvailable:")).map(|(total, free)| total.saturating_sub(free)),
        memory_total: total,
        utilisation: None,
    }
}

/// `GET /metrics`
pub(crate) fn metrics(service: &ModelService) -> HttpResponse {
    let models: Vec<_> =
        service.loaded().iter().map(|model| (model.clone(), model.totals(), model.queued())).collect();
    let mut page = Exposition::default();
    let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(usize) -> f64| {
        page.family(name, kind, help);
        for (index, (model, ..)) in models.iter().enumerate() {
            page.sample(name, &[("model", model.name()), ("version", model.version())], value(index));
        }
    };
    #[allow(clippy::cast_precision_loss, reason = "Prometheus counts in floating point")]
    {
        let total = |pick: fn(&crate::metrics::ModelTotals) -> u64| {
            let counts: Vec<f64> = models.iter().map(|(_, totals, _)| pick(totals) as f64).collect();
            move |index: usize| counts.get(index).copied().unwrap_or(0.0)
        };
        each("cudock_requests_total", "counter", "Successful requests.", &total(|totals| totals.requests));
        each("cudock_rows_total", "counter", "Rows of successful requests.", &total(|totals| totals.rows));
        each("cudock_batches_total", "counter", "Batches run.", &total(|totals| totals.batches));
        each(
            "cudock_expired_total",
            "counter",
            "Requests whose deadline passed.",
            &total(|totals| totals.expired),
        );
        each(
            "cudock_cancelled_total",
            "counter",
            "Requests whose client disconnected.",
            &total(|totals| totals.canceled),
        );
        each(
            "cudock_failed_total",
            "counter",
            "Requests that failed in the engine.",
            &total(|totals| totals.failed),
        );
        each(
            "cudock_engine_restarts_total",
            "counter",
            "Engines restarted.",
            &total(|totals| totals.restarts),
        );
        let queued = |index: usize| models.get(index).map_or(0.0, |(_, _, (rows, _))| *rows as f64);
        each("cudock_queue_rows", "gauge", "Queued rows.", &queued);
        let ready = |index: usize| f64::from(models.get(index).is_some_and(|(model, ..)| model.is_ready()));
        each("cudock_model_ready", "gauge", "Whether an engine runs the model.", &ready);
    }
    rejections(&mut page, service, models.iter().map(|(model, totals, _)| (&**model, totals.rejected)));
    let stages = [("queue", 0), ("compute", 1), ("total", 2)];
    page.family("cudock_request_seconds", "histogram", "Time of successful requests by stage.");
    for (model, totals, _) in &models {
        for (stage, index) in stages {
            let histogram = [&totals.stages.queue, &totals.stages.compute, &totals.stages.total];
            let labels = [("model", model.name()), ("version", model.version()), ("stage", stage)];
            if let Some(histogram) = histogram.get(index) {
                page.histogram("cudock_request_seconds", &labels, histogram);
            }
        }
    }
    devices(&mut page, service);
    response::full(StatusCode::OK, "text/plain; version=0.0.4", page.into_text())
}

/// Rejected requests: by a model's queue, or for lack of memory before that.
#[allow(clippy::cast_precision_loss, reason = "Prometheus counts in floating point")]
fn rejections<'model>(
    page: &mut Exposition,
    service: &ModelService,
    models: impl Iterator<Item = (&'model Model, u64)>,
) {
    let name = "cudock_refused_total";
    page.family(name, "counter", "Requests rejected because the queue or the memory budget was full.");
    for (model, rejected) in models {
        page.sample(name, &[("model", model.name()), ("version", model.version())], rejected as f64);
    }
    page.sample(name, &[("model", ""), ("version", "")], service.resources.budget.rejected() as f64);
}

#[allow(clippy::cast_precision_loss, reason = "Prometheus counts in floating point")]
fn devices(page: &mut Exposition, service: &ModelService) {
    let readings = (service.settings.read_devices)();
    let numbers: Vec<String> = readings.iter().map(|reading| reading.gpu.to_string()).collect();
    let mut each =
        |name: &str, help: &str, value: &dyn Fn(&crate::settings::DeviceReading) -> Option<f64>| {
            page.family(name, "gauge", help);
            for (reading, number) in readings.iter().zip(&numbers) {
                if let Some(value) = value(reading) {
                    page.sample(name, &[("gpu", number), ("name", &reading.name)], value);
                }
            }
        };
    each("cudock_gpu_memory_used_bytes", "Memory in use on the GPU.", &|reading| {
        Some(reading.memory_used as f64)
    });
    each("cudock_gpu_memory_total_bytes", "Memory of the GPU.", &|reading| Some(reading.memory_total as f64));
    each("cudock_gpu_utilisation", "Share of time a kernel ran.", &|reading| reading.utilisation);
    page.family("cudock_held_bytes", "gauge", "Bytes of requests being read, queued or running.");
    page.sample("cudock_held_bytes", &[], service.resources.budget.held() as f64);
}

/// `GET /v2`
pub(crate) fn server_metadata() -> HttpResponse {
    let extensions = grpc::describe::EXTENSIONS;
    response::json(
        StatusCode::OK,
        &json!({"name": "cudock", "version": env!("CARGO_PKG_VERSION"), "extensions": extensions}),
    )
}

/// `GET /v2/models/NAME`
pub(crate) fn model_metadata(service: &ModelService, model: &ModelName) -> Result<HttpResponse, ServeError> {
    let model = service.model(&model.name, model.version.as_deref())?;
    let tensors = |specs: &[TensorSpec]| -> Vec<Value> {
        specs
            .iter()
            .map(|spec| json!({"name": spec.name, "datatype": spec.dtype.protocol_name(), "shape": spec.protocol_shape()}))
            .collect()
    };
    let versions: Vec<_> = service
        .loaded()
        .iter()
        .filter(|other| other.name() == model.name())
        .map(|other| other.version().to_owned())
        .collect();
    Ok(response::json(
        StatusCode::OK,
        &json!({
            "name": model.name(), "versions": versions, "platform": "onnxruntime_onnx",
            "inputs": tensors(&model.signature().inputs), "outputs": tensors(&model.signature().outputs),
        }),
    ))
}

/// `GET /v2/models/NAME/ready`
pub(crate) fn model_ready(service: &ModelService, model: &ModelName) -> Result<HttpResponse, ServeError> {
    let model = service.model(&model.name, model.version.as_deref())?;
    let ready = model.is_ready() && !service.is_draining();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(response::json(status, &json!({"name": model.name(), "ready": ready})))
}

/// `GET /v2/models/NAME/config`, in Triton's format.
pub(crate) fn model_config(service: &ModelService, model: &ModelName) -> Result<HttpResponse, ServeError> {
    let model = service.model(&model.name, model.version.as_deref())?;
    let skip = usize::from(model.signature().batched);
    let tensors = |specs: &[TensorSpec]| -> Vec<Value> {
        specs
            .iter()
            .map(|spec| {
                let dims: Vec<i64> = spec.protocol_shape().into_iter().skip(skip).collect();
                let kind = if spec.dtype == cudock_tensor::DType::String {
                    "STRING"
                } else {
                    spec.dtype.protocol_name()
                };
                json!({"name": spec.name, "data_type": format!("TYPE_{kind}"), "dims": dims})
            })
            .collect()
    };
    let wait = model.settings().batcher.max_wait.as_micros();
    Ok(response::json(
        StatusCode::OK,
        &json!({
            "name": model.name(), "platform": "onnxruntime_onnx", "backend": "onnxruntime",
            "max_batch_size": model.max_rows(),
            "input": tensors(&model.signature().inputs), "output": tensors(&model.signature().outputs),
            "dynamic_batching": {
                "preferred_batch_size": model.preferred(),
                "max_queue_delay_microseconds": u64::try_from(wait).unwrap_or(u64::MAX),
            },
        }),
    ))
}

/// `GET /v2/models/NAME/stats`, in Triton's format; of all models if none is named.
pub(crate) fn model_statistics(
    service: &ModelService,
    model: Option<&ModelName>,
) -> Result<HttpResponse, ServeError> {
    let models = match model {
        Some(model) => vec![service.model(&model.name, model.version.as_deref())?],
        None => service.loaded().to_vec(),
    };
    let counts: Vec<Value> = models.iter().map(|model| counts(model)).collect();
    Ok(response::json(StatusCode::OK, &json!({ "model_stats": counts })))
}

fn counts(model: &Model) -> Value {
    let counts = model.statistics();
    let duration = |count: u64, ns: u64| json!({"count": count, "ns": ns});
    let sizes: Vec<Value> = counts
        .batch_sizes
        .iter()
        .map(|&(rows, count, ns)| json!({"batch_size": rows, "compute_infer": duration(count, ns)}))
        .collect();
    json!({
        "name": model.name(), "version": model.version(),
        "inference_count": counts.rows, "execution_count": counts.batches,
        "inference_stats": {
            "success": duration(counts.requests, counts.queue_ns + counts.compute_ns),
            "fail": duration(counts.failed, 0),
            "queue": duration(counts.requests, counts.queue_ns),
            "compute_infer": duration(counts.requests, counts.compute_ns),
        },
        "batch_stats": sizes,
    })
}

/// The body of `POST /v2/repository/index`.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct IndexRequest {
    ready: bool,
}

/// `POST /v2/repository/index`; with `{"ready": true}` only models that can be used.
pub(crate) fn repository_index(service: &ModelService, body: &[u8]) -> Result<HttpResponse, ServeError> {
    let wanted: IndexRequest = if body.trim_ascii().is_empty() {
        IndexRequest::default()
    } else {
        serde_json::from_slice(body).map_err(|error| {
            HttpRejection::BadRequest(format!("the body is not an index request: {error}"))
        })?
    };
    let entries: Vec<Value> = service
        .models()
        .into_iter()
        .filter(|entry| entry.ready || !wanted.ready)
        .map(|entry| {
            let state = if entry.ready { "READY" } else { "UNAVAILABLE" };
            json!({"name": entry.name, "version": entry.version, "state": state, "reason": entry.reason})
        })
        .collect();
    Ok(response::json(StatusCode::OK, &Value::Array(entries)))
}
