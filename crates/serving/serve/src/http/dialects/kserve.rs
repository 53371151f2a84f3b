//! The first version of KServe's protocol: <https://kserve.github.io/website/docs/concepts/architecture/data-plane/v1-protocol>.

use cudock_server::HttpRejection;
use hyper::StatusCode;
use serde_json::json;

use super::foreign_call::{ForeignCall, is_root};
use super::v1;
use crate::ServeError;
use crate::http::response::{self, HttpResponse};
use crate::http::route::ModelName;
use crate::service::ModelService;

pub(super) fn call(parts: &[&str]) -> Result<Option<ForeignCall>, HttpRejection> {
    match parts {
        ["v1", "models"] => Ok(Some(ForeignCall::Models)),
        parts if is_root(parts) => Ok(Some(ForeignCall::Probe)),
        parts => Ok(v1::call(parts)?.filter(|call| !matches!(call, ForeignCall::Metadata(_)))),
    }
}

/// `GET /`
pub(super) fn alive() -> HttpResponse {
    response::json(StatusCode::OK, &json!({"status": "alive"}))
}

/// `GET /v1/models`
pub(super) fn models(service: &ModelService) -> HttpResponse {
    let mut names: Vec<String> = service.models().into_iter().map(|listing| listing.name).collect();
    names.dedup();
    response::json(StatusCode::OK, &json!({ "models": names }))
}

/// `GET /v1/models/NAME`
pub(super) fn model(service: &ModelService, model: &ModelName) -> Result<HttpResponse, ServeError> {
    let served = service.find(&model.name, model.version.as_deref())?;
    let report = json!({"name": model.name, "ready": service.is_model_ready(&served)});
    Ok(response::json(StatusCode::OK, &report))
}
