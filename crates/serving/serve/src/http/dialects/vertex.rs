//! Custom containers of Google's Vertex AI:
//! <https://cloud.google.com/vertex-ai/docs/predictions/custom-container-requirements>.

use cudock_base::Environment;
use cudock_tensor::envelope::{Envelope, ResponseForm};

use super::ForeignCall;
use crate::http::infer::PredictApi;

pub(super) static API: PredictApi = PredictApi {
    envelope: &Envelope { inputs: &[("instances", ResponseForm::Rows)], bare: false, strict: false },
    form: ResponseForm::Rows,
    responds_json: true,
    has_csv: false,
    has_handlers: false,
};

/// The paths that Vertex AI chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexRoutes {
    pub health: String,
    pub predict: String,
}

impl Default for VertexRoutes {
    fn default() -> Self {
        Self { health: "/health".to_owned(), predict: "/predict".to_owned() }
    }
}

impl VertexRoutes {
    /// The paths in `AIP_HEALTH_ROUTE` and `AIP_PREDICT_ROUTE`.
    pub fn of(environment: &Environment) -> Self {
        let path = |name| environment.get(name).map(|value| value.to_string_lossy().into_owned());
        let Self { health, predict } = Self::default();
        Self {
            health: path("AIP_HEALTH_ROUTE").unwrap_or(health),
            predict: path("AIP_PREDICT_ROUTE").unwrap_or(predict),
        }
    }

    pub(super) fn call(&self, path: &str) -> Option<ForeignCall> {
        if path == self.predict {
            return Some(ForeignCall::Predict(None));
        }
        (path == self.health).then_some(ForeignCall::Probe)
    }
}
