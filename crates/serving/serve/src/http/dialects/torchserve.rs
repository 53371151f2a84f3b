//! TorchServe: <https://docs.pytorch.org/serve/inference_api.html> and `management_api.html` next to it.

use std::sync::Arc;

use cudock_server::HttpRejection;
use cudock_tensor::ResponseForm;
use cudock_tensor::envelope::Envelope;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::foreign_call::{ForeignCall, status_or};
use crate::ServeError;
use crate::http::predict_api::PredictApi;
use crate::http::response::{self, HttpResponse};
use crate::http::route::{ModelName, parse_model_name};
use crate::model::Model;
use crate::service::{ModelService, ServedModel};

pub(super) static API: PredictApi = PredictApi {
    envelope: &Envelope {
        inputs: &[
            ("data", ResponseForm::Bare),
            ("body", ResponseForm::Bare),
            ("instances", ResponseForm::Rows),
            ("input", ResponseForm::Bare),
        ],
        bare: true,
        strict: false,
    },
    form: ResponseForm::Bare,
    responds_json: true,
    has_csv: false,
    has_handlers: true,
};

/// The word for all versions, in place of a version.
const ALL: &str = "all";

pub(super) fn call(parts: &[&str]) -> Result<Option<ForeignCall>, HttpRejection> {
    Ok(Some(match parts {
        ["ping"] => ForeignCall::Probe,
        ["predictions", name] => ForeignCall::Predict(Some(parse_model_name(name, None)?)),
        ["predictions", name, version] => ForeignCall::Predict(Some(parse_model_name(name, Some(version))?)),
        ["models"] => ForeignCall::Models,
        ["models", name] => ForeignCall::Model(parse_model_name(name, None)?),
        ["models", name, version] => ForeignCall::Model(parse_model_name(name, Some(version))?),
        _ => return Ok(None),
    }))
}

/// `GET /ping`
pub(super) fn ping(is_ready: bool) -> HttpResponse {
    let status = status_or(is_ready, StatusCode::INTERNAL_SERVER_ERROR);
    response::json(status, &json!({"status": if is_ready { "Healthy" } else { "Unhealthy" }}))
}

/// `GET /models`: all on one page.
pub(super) fn models(service: &ModelService) -> HttpResponse {
    let all = service.all();
    let mut models: Vec<Value> = Vec::new();
    for served in all.iter() {
        let file = served.file();
        let model = json!({"modelName": file.name, "modelUrl": file.path.file_name().map(std::ffi::OsStr::to_string_lossy)});
        // The newest version of each is the last one.
        if models.last().is_some_and(|last| last.get("modelName") == model.get("modelName")) {
            models.pop();
        }
        models.push(model);
    }
    response::json(StatusCode::OK, &json!({ "models": models }))
}

/// `GET /models/NAME`: the newest version, a certain one, or all.
pub(super) fn model(service: &ModelService, model: &ModelName) -> Result<HttpResponse, ServeError> {
    let descriptions: Vec<Value> = if model.version.as_deref() == Some(ALL) {
        service.find(&model.name, None)?;
        let all = service.all();
        all.iter().filter(|served| served.file().name == model.name).map(describe).collect()
    } else {
        vec![describe(&service.find(&model.name, model.version.as_deref())?)]
    };
    Ok(response::json(StatusCode::OK, &descriptions))
}

fn describe(served: &ServedModel) -> Value {
    let (file, known) = (served.file(), served.known());
    let workers = known.map(workers).unwrap_or_default();
    let batcher = known.map(|model| &model.settings.batcher);
    json!({
        "modelName": file.name,
        "modelVersion": file.version,
        "modelUrl": file.path.file_name().map(std::ffi::OsStr::to_string_lossy),
        "runtime": "python",
        "minWorkers": workers.len(),
        "maxWorkers": workers.len(),
        "batchSize": known.map_or(0, |model| model.max_rows()),
        "maxBatchDelay": batcher.map_or(0.0, |batcher| batcher.max_wait.as_secs_f64() * 1e3),
        "loadedAtStartup": known.is_some(),
        "workers": workers,
        "jobQueueStatus": {
            "remainingCapacity": known.map_or(0, |model| {
                model.settings.batcher.max_queued_rows.saturating_sub(model.queue.status().rows)
            }),
            "pendingRequests": known.map_or(0, |model| model.queue.status().rows),
        },
    })
}

fn workers(model: &Arc<Model>) -> Vec<Value> {
    let engines = model.health.engines();
    let worker = |(index, (is_gpu, process)): (usize, &(bool, Option<u32>))| json!({"id": index.to_string(), "status": "READY", "gpu": is_gpu, "pid": process});
    engines.iter().enumerate().map(worker).collect()
}

/// The class of an error.
pub(super) fn exception(error: &ServeError, status: StatusCode) -> &'static str {
    match (error, status) {
        (ServeError::ModelNotFound { .. }, _) => "ModelNotFoundException",
        (ServeError::VersionNotFound { .. }, _) => "ModelVersionNotFoundException",
        (_, StatusCode::NOT_FOUND) => "ResourceNotFoundException",
        (_, StatusCode::METHOD_NOT_ALLOWED) => "MethodNotAllowedException",
        (_, StatusCode::PAYLOAD_TOO_LARGE) => "RequestEntityTooLargeException",
        (_, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => "ServiceUnavailableException",
        (_, status) if status.is_client_error() => "BadRequestException",
        _ => "InternalServerException",
    }
}
