//! Custom containers of Google's Vertex AI:
//! <https://cloud.google.com/vertex-ai/docs/predictions/custom-container-requirements>.

use cudock_tensor::ResponseForm;
use cudock_tensor::envelope::Envelope;

use super::foreign_call::ForeignCall;
use crate::http::predict_api::PredictApi;
use crate::settings::VertexRoutes;

pub(super) static API: PredictApi = PredictApi {
    envelope: &Envelope { inputs: &[("instances", ResponseForm::Rows)], bare: false, strict: false },
    form: ResponseForm::Rows,
    responds_json: true,
    has_csv: false,
    has_handlers: false,
};

pub(super) fn call(routes: &VertexRoutes, path: &str) -> Option<ForeignCall> {
    if path == routes.predict {
        return Some(ForeignCall::Predict(None));
    }
    (path == routes.health).then_some(ForeignCall::Probe)
}
