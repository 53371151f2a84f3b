//! Information about server and models, for probes, the page and the Open Inference Protocol.

use std::sync::Arc;

use cudock_server::HttpRejection;
use cudock_tensor::{DType, TensorSpec};
use hyper::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::response::{self, HttpResponse};
use super::route::ModelName;
use crate::grpc::describe;
use crate::model::Model;
use crate::page::status::{DeviceStatus, ModelState, ModelStatus, ServerState, ServerStatus, StatusReport};
use crate::service::ModelService;
use crate::{ModelListing, ServeError};

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
            let ModelListing { name, version, reason, .. } = service.failures().into_iter().next()?;
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
    let loaded = service.loaded();
    let describe = |model: &Arc<Model>| {
        let health = model.health.snapshot();
        json!({
            "name": model.name(),
            "version": model.version(),
            "ready": model.is_ready(),
            "device": &*model.health.device_name(),
            "provider": health.devices.first().map(|device| device.provider),
            "engine": health.devices.first().map(|device| device.engine.clone()),
            "engine_processes": health.processes,
            "reason": model.degraded(),
        })
    };
    let readings = (service.settings.read_devices)();
    let memory =
        readings.first().map(|reading| json!({"used": reading.memory_used, "total": reading.memory_total}));
    let gpu_name = loaded
        .iter()
        .flat_map(|model| model.health.snapshot().devices)
        .find(|device| device.provider.is_gpu())
        .map(|device| device.name)
        .or_else(|| readings.first().map(|reading| reading.name.clone()));
    let is_ready = service.is_ready();
    let state = if state == ServerState::Degraded && !is_ready { json!("unhealthy") } else { json!(state) };
    let report = json!({
        "status": state, "reason": reason,
        "device": loaded.first().map(|model| model.health.device_name().to_string()),
        "gpu_available": gpu_name.is_some(), "gpu_name": gpu_name, "gpu_memory": memory,
        "models": loaded.iter().map(describe).collect::<Vec<_>>(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    response::json(probe_status(is_ready), &report)
}

fn probe_status(is_ready: bool) -> StatusCode {
    if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// 200 or 503, for probes.
pub(crate) fn probe(what: &str, yes: bool) -> HttpResponse {
    response::json(probe_status(yes), &json!({ what: yes }))
}

/// `GET /status`
pub(crate) fn status(service: &ModelService) -> HttpResponse {
    let (state, reason) = state(service);
    let loaded = service.loaded();
    let models = loaded.iter().map(|model| model_status(model));
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
        models: models.chain(service.failures().into_iter().map(ModelStatus::failed)).collect(),
        devices,
    };
    response::json(StatusCode::OK, &report)
}

fn model_status(model: &Model) -> ModelStatus {
    let totals = model.queue.metrics.totals();
    ModelStatus {
        name: model.name().to_owned(),
        version: model.version().to_owned(),
        state: if model.is_ready() { ModelState::Ready } else { ModelState::Restarting },
        device: model.health.device_name().to_string(),
        provider: model.health.snapshot().devices.first().map(|device| device.provider),
        degraded: model.degraded(),
        batched: model.signature.batched,
        inputs: model.signature.inputs.clone(),
        outputs: model.signature.outputs.clone(),
        max_batch: model.max_rows(),
        try_range: model.settings.try_range.map(Into::into),
        takes_images: model.inputs.image.is_some(),
        totals: totals.counts,
        queue: model.queue.status(),
        latency_ms: model.queue.metrics.recent(model.queue.now()),
        batch_sizes: totals.sizes,
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
    Ok(response::json(probe_status(ready), &json!({"name": model.name(), "ready": ready})))
}

/// `GET /v2/models/NAME/config`, in Triton's format.
pub(crate) fn model_config(service: &ModelService, model: &ModelName) -> Result<HttpResponse, ServeError> {
    let model = service.model(&model.name, model.version.as_deref())?;
    let (signature, batcher) = (&model.signature, &model.settings.batcher);
    let tensor = |spec: &TensorSpec| {
        let dims: Vec<i64> = spec.protocol_shape().into_iter().skip(usize::from(signature.batched)).collect();
        let kind = if spec.dtype == DType::String { "STRING" } else { spec.dtype.protocol_name() };
        json!({"name": spec.name, "data_type": format!("TYPE_{kind}"), "dims": dims})
    };
    let config = json!({
        "name": model.name(), "platform": "onnxruntime_onnx", "backend": "onnxruntime",
        "max_batch_size": model.max_rows(),
        "input": signature.inputs.iter().map(tensor).collect::<Vec<_>>(),
        "output": signature.outputs.iter().map(tensor).collect::<Vec<_>>(),
        "dynamic_batching": {
            "preferred_batch_size": batcher.preferred_rows,
            "max_queue_delay_microseconds": u64::try_from(batcher.max_wait.as_micros()).unwrap_or(u64::MAX),
        },
    });
    Ok(response::json(StatusCode::OK, &config))
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
