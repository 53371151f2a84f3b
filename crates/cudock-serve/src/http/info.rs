//! Information about server and models, for probes, the page and the Open Inference Protocol.

use cudock_server::HttpRejection;
use cudock_tensor::TensorSpec;
use hyper::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::response::{self, HttpResponse};
use super::route::ModelName;
use crate::ServeError;
use crate::grpc::describe;
use crate::metrics::Percentiles;
use crate::model::Model;
use crate::page::status::{
    BatchCount, DeviceStatus, Latencies, ModelState, ModelStatus, QueueStatus, RequestTotals, ServerState,
    ServerStatus, StatusReport,
};
use crate::service::ModelService;

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
pub(crate) fn status(service: &ModelService) -> HttpResponse {
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
    response::json(StatusCode::OK, &report)
}

fn model_status(model: &Model) -> ModelStatus {
    let health = model.health();
    let (totals, recent) = (model.totals(), model.recent());
    let (rows, requests) = model.queued();
    let stage = |percentiles: Percentiles| (percentiles.p99 > 0.0).then_some(percentiles);
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

/// `GET /v2`
pub(crate) fn server_metadata() -> HttpResponse {
    response::json(StatusCode::OK, &describe::server_metadata())
}

/// `GET /v2/models/NAME`
pub(crate) fn model_metadata(service: &ModelService, model: &ModelName) -> Result<HttpResponse, ServeError> {
    let model = service.model(&model.name, model.version.as_deref())?;
    let loaded = service.loaded();
    let versions = loaded.iter().filter(|other| other.name() == model.name()).map(|other| other.version());
    Ok(response::json(StatusCode::OK, &describe::model_metadata(&model, versions)))
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
    Ok(response::json(StatusCode::OK, &describe::statistics(&models)))
}

/// The body of `POST /v2/repository/index`.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct IndexRequest {
    ready: bool,
}

/// `POST /v2/repository/index`; with `{"ready": true}` only models that can be used.
pub(crate) fn repository_index(service: &ModelService, body: &[u8]) -> Result<HttpResponse, ServeError> {
    let request: IndexRequest = parse_body(body, "an index request")?;
    Ok(response::json(StatusCode::OK, &describe::index(service.models(), request.ready).models))
}

/// Parses a JSON body that may be omitted.
pub(crate) fn parse_body<T: Default + DeserializeOwned>(body: &[u8], what: &str) -> Result<T, HttpRejection> {
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body)
        .map_err(|error| HttpRejection::BadRequest(format!("the body is not {what}: {error}")))
}
