//! The inference server of Azure Machine Learning:
//! <https://learn.microsoft.com/azure/machine-learning/how-to-inference-server-http>.

use cudock_tensor::ResponseForm;
use cudock_tensor::envelope::Envelope;
use hyper::StatusCode;

use super::foreign_call::{ForeignCall, is_root, status_or};
use crate::http::predict_api::PredictApi;
use crate::http::response::{self, HttpResponse};

pub(super) static API: PredictApi = PredictApi {
    envelope: &Envelope {
        inputs: &[
            ("data", ResponseForm::Bare),
            ("input_data", ResponseForm::Bare),
            ("inputs", ResponseForm::Bare),
            ("input", ResponseForm::Bare),
        ],
        bare: true,
        strict: false,
    },
    form: ResponseForm::Bare,
    responds_json: true,
    has_csv: false,
    has_handlers: false,
};

pub(super) fn call(parts: &[&str]) -> Option<ForeignCall> {
    match parts {
        ["score"] => Some(ForeignCall::Predict(None)),
        parts => is_root(parts).then_some(ForeignCall::Probe),
    }
}

/// `GET /`, for liveness and readiness: the inference server answers once the model is loaded.
pub(super) fn healthy(is_ready: bool) -> HttpResponse {
    let text = if is_ready { "Healthy" } else { "Unhealthy" };
    response::full(status_or(is_ready, StatusCode::SERVICE_UNAVAILABLE), "text/plain", text)
}
