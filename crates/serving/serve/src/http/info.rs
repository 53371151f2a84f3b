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
use crate::model::{Model, ModelFile};
use crate::page::status::{DeviceStatus, ModelState, ModelStatus, ServerState, ServerStatus, StatusReport};
use crate::proc::status_bytes;
use crate::service::{ModelService, ServedModel};
use crate::{ModelListing, ServeError};

/// The state of the server, and the reason if it is not healthy.
pub(super) fn state(service: &ModelService) -> (ServerState, Option<String>) {
    if service.is_draining() {
        return (ServerState::Draining, Some("the server is shutting down".to_owned()));
    }
    if service.is_loading() {
        return (ServerState::Starting, Some("models are being loaded".to_owned()));
    }
    if service.resources.budget.is_exhausted() {
        return (ServerState::Degraded, Some("the memory budget is exhausted".to_owned()));
    }
    let models = service.known();
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
    let known = service.known();
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
            "precision": health.devices.first().map(|device| device.precision.clone()),
            "notes": health.devices.first().map(|device| device.notes.clone()),
            "reason": model.degraded(),
        })
    };
    let readings = (service.settings.read_devices)();
    let memory =
        readings.first().map(|reading| json!({"used": reading.memory_used, "total": reading.memory_total}));
    let gpu_name = gpu_name(service);
    let is_ready = service.is_ready();
    let state = if state == ServerState::Degraded && !is_ready { json!("unhealthy") } else { json!(state) };
    let report = json!({
        "status": state, "reason": reason,
        "device": known.first().map(|model| model.health.device_name().to_string()),
        "gpu_available": gpu_name.is_some(), "gpu_name": gpu_name, "gpu_memory": memory,
        "models": known.iter().map(describe).collect::<Vec<_>>(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    response::json(probe_status(is_ready), &report)
}

/// The name of the GPU that runs a model, or of the first one.
pub(super) fn gpu_name(service: &ModelService) -> Option<String> {
    let mut devices = service.known().into_iter().flat_map(|model| model.health.snapshot().devices);
    let used = devices.find(|device| device.provider.is_gpu()).map(|device| device.name);
    used.or_else(|| Some((service.settings.read_devices)().first()?.name.clone()))
}

pub(super) fn probe_status(is_ready: bool) -> StatusCode {
    if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// 200 or 503, for probes.
pub(crate) fn probe(what: &str, yes: bool) -> HttpResponse {
    response::json(probe_status(yes), &json!({ what: yes }))
}

/// `GET /status`
pub(crate) fn status(service: &ModelService) -> HttpResponse {
    let (state, reason) = state(service);
    let failures = service.failures();
    let models = service.all();
    let has_failed = |file: &ModelFile| failures.iter().any(|failed| file.is(&failed.name, &failed.version));
    let models: Vec<ModelStatus> = models
        .iter()
        .filter(|served| served.known().is_some() || !has_failed(served.file()))
        .map(|served| served_status(service, served))
        .collect();
    let mut devices: Vec<DeviceStatus> = (service.settings.read_devices)()
        .into_iter()
        .map(|reading| DeviceStatus {
            name: reading.name,
            memory_used: Some(reading.memory_used),
            memory_total: Some(reading.memory_total),
            utilization: reading.utilization,
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
        models: models.into_iter().chain(failures.into_iter().map(ModelStatus::failed)).collect(),
        devices,
    };
    response::json(StatusCode::OK, &report)
}

fn served_status(service: &ModelService, served: &ServedModel) -> ModelStatus {
    let file = served.file();
    let residency = service.residency(&file.id());
    let state = match served.known().filter(|model| model.is_resident()) {
        Some(model) if model.is_ready() => ModelState::Ready,
        Some(_) => ModelState::Restarting,
        None if residency.is_loading => ModelState::Loading,
        None => ModelState::Unloaded,
    };
    ModelStatus {
        name: file.name.clone(),
        version: file.version.clone(),
        state,
        memory: residency.memory,
        kept_loaded: residency.is_pinned,
        ..served.known().map(|model| model_status(model)).unwrap_or_default()
    }
}

fn model_status(model: &Model) -> ModelStatus {
    let totals = model.queue.metrics.totals();
    let last_request = model.queue.usage().last_request;
    let device = model.health.snapshot().devices.into_iter().next();
    ModelStatus {
        idle_s: last_request.map(|last| last.elapsed().as_secs_f64()),
        device: model.health.device_name().to_string(),
        provider: device.as_ref().map(|device| device.provider),
        degraded: model.degraded(),
        batched: model.signature.batched,
        inputs: model.signature.inputs.clone(),
        outputs: model.signature.outputs.clone(),
        max_batch: model.max_rows(),
        batch_limit: model.queue.row_limit(),
        precision: device.and_then(|device| device.precision),
        try_range: model.settings.options.try_model.and_then(|page| page.range).map(Into::into),
        takes_images: model.inputs.image.is_some(),
        totals: totals.counts,
        queue: model.queue.status(),
        latency_ms: model.queue.metrics.recent(model.queue.now()),
        batch_sizes: totals.sizes,
        ..ModelStatus::default()
    }
}

/// Memory of a machine without a GPU.
fn cpu_status() -> DeviceStatus {
    let bytes = |name: &str| status_bytes("/proc/meminfo", name);
    let total = bytes("MemTotal:");
    DeviceStatus {
        name: "cpu".to_owned(),
        memory_used: total.zip(bytes("MemAvailable:")).map(|(total, free)| total.saturating_sub(free)),
        memory_total: total,
        utilization: None,
    }
}

/// `GET /v2`
pub(crate) fn server_metadata() -> HttpResponse {
    response::json(StatusCode::OK, &describe::server_metadata())
}

/// `GET /v2/models/NAME`
pub(crate) async fn model_metadata(
    service: &ModelService,
    model: &ModelName,
) -> Result<HttpResponse, ServeError> {
    let model = service.model(&model.name, model.version.as_deref()).await?;
    let all = service.all();
    let files = all.iter().map(ServedModel::file).filter(|other| other.name == model.name());
    let versions = files.map(|other| other.version.as_str());
    Ok(response::json(StatusCode::OK, &describe::model_metadata(&model, versions)))
}

/// `GET /v2/models/NAME/ready`
pub(crate) fn model_ready(service: &ModelService, model: &ModelName) -> Result<HttpResponse, ServeError> {
    let served = service.find(&model.name, model.version.as_deref())?;
    let ready = service.is_model_ready(&served);
    Ok(response::json(probe_status(ready), &json!({"name": model.name, "ready": ready})))
}

/// `GET /v2/models/NAME/config`, in Triton's format.
pub(crate) async fn model_config(
    service: &ModelService,
    model: &ModelName,
) -> Result<HttpResponse, ServeError> {
    let model = service.model(&model.name, model.version.as_deref()).await?;
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
        Some(model) => {
            let served = service.find(&model.name, model.version.as_deref())?;
            served.known().cloned().into_iter().collect()
        }
        None => service.known(),
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
