//! The server of most tutorials, in Flask or FastAPI: `POST /predict` is the server's own, and `GET /health` says whether
//! there is a GPU.

use hyper::StatusCode;
use serde_json::json;

use super::foreign_call::{ForeignCall, status_or};
use crate::http::info;
use crate::http::response::{self, HttpResponse};
use crate::page::status::ServerState;
use crate::service::ModelService;

pub(super) fn call(parts: &[&str]) -> Option<ForeignCall> {
    match parts {
        ["health"] => Some(ForeignCall::Health),
        _ => None,
    }
}

/// `GET /health`: `degraded` without a GPU.
pub(super) fn health(service: &ModelService) -> HttpResponse {
    let gpu_name = info::gpu_name(service);
    let is_healthy = gpu_name.is_some() && info::state(service).0 == ServerState::Healthy;
    let report = json!({
        "status": if is_healthy { "healthy" } else { "degraded" },
        "gpu_available": gpu_name.is_some(),
        "gpu_name": gpu_name,
    });
    response::json(status_or(service.is_ready(), StatusCode::SERVICE_UNAVAILABLE), &report)
}
