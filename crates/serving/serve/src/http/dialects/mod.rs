//! The APIs of other model servers, for clients that cannot be changed.
//!
//! Each has a module with its paths, its JSON and its descriptions of models. Requests run like those of `/predict`; only
//! the names around the numbers differ.

mod azureml;
mod flask;
mod foreign_call;
mod kserve;
mod sagemaker;
mod tensorflow;
mod torchserve;
mod v1;
mod vertex;

use cudock_project::Dialect;
use cudock_server::HttpRejection;
use hyper::Method;
use hyper::header::{self, HeaderMap, HeaderValue};
use serde_json::json;

use self::foreign_call::is_root;
pub(crate) use self::foreign_call::{ForeignCall, ForeignRoute};
use super::predict_api::{self, PredictApi};
use super::response::{self, HttpResponse};
use super::route::{method_not_allowed, path_parts};
use crate::ServeError;
use crate::service::ModelService;
use crate::settings::Dialects;

impl Dialects {
    /// The route of a request, if it is to one of these APIs.
    pub(crate) fn route(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Option<ForeignRoute>, ServeError> {
        if self.enabled.is_empty() {
            return Ok(None);
        }
        let parts = path_parts(path);
        for &dialect in &self.enabled {
            let Some(call) = self.call(dialect, path, &parts)? else { continue };
            if call == ForeignCall::Probe && is_root(&parts) && accepts_html(headers) {
                // A browser gets the page.
                continue;
            }
            let allowed = call.allowed(dialect);
            if !allowed.split(", ").any(|name| name == method.as_str()) {
                return Err(method_not_allowed(path, allowed));
            }
            return Ok(Some(ForeignRoute { dialect, call }));
        }
        Ok(None)
    }

    /// Whether a path of the server itself belongs to one of these APIs.
    pub(crate) fn overrides(&self, path: &str) -> bool {
        self.described().iter().any(|route| route.path == path)
    }

    /// All paths of these APIs, with `{model}` and `{version}` in them.
    pub(crate) fn described(&self) -> Vec<DescribedRoute> {
        let vertex = [(self.vertex.predict.as_str(), true), (self.vertex.health.as_str(), false)];
        let mut routes = Vec::new();
        for &dialect in &self.enabled {
            let paths = if dialect == Dialect::Vertex { &vertex } else { paths(dialect) };
            let route = |&(path, is_predict): &(&str, bool)| DescribedRoute {
                dialect,
                path: path.to_owned(),
                is_predict,
            };
            routes.extend(paths.iter().map(route));
        }
        routes
    }

    fn call(
        &self,
        dialect: Dialect,
        path: &str,
        parts: &[&str],
    ) -> Result<Option<ForeignCall>, HttpRejection> {
        match dialect {
            Dialect::TorchServe => torchserve::call(parts),
            Dialect::SageMaker => Ok(sagemaker::call(parts)),
            Dialect::Vertex => Ok(vertex::call(&self.vertex, path)),
            Dialect::AzureMl => Ok(azureml::call(parts)),
            Dialect::KServeV1 => kserve::call(parts),
            Dialect::TensorFlowServing => tensorflow::call(parts),
            Dialect::Flask => Ok(flask::call(parts)),
        }
    }
}

/// A route in the description of the server.
pub(crate) struct DescribedRoute {
    pub(crate) dialect: Dialect,
    pub(crate) path: String,
    pub(crate) is_predict: bool,
}

/// The paths of an API, and whether each takes inference requests.
const fn paths(dialect: Dialect) -> &'static [(&'static str, bool)] {
    match dialect {
        Dialect::TorchServe => &[
            ("/ping", false),
            ("/predictions/{model}", true),
            ("/predictions/{model}/{version}", true),
            ("/models", false),
            ("/models/{model}", false),
            ("/models/{model}/{version}", false),
        ],
        Dialect::SageMaker => &[("/ping", false), ("/invocations", true)],
        Dialect::AzureMl => &[("/", false), ("/score", true)],
        Dialect::KServeV1 => &[
            ("/", false),
            ("/v1/models", false),
            ("/v1/models/{model}", false),
            ("/v1/models/{model}:predict", true),
        ],
        Dialect::TensorFlowServing => &[
            ("/v1/models/{model}", false),
            ("/v1/models/{model}/metadata", false),
            ("/v1/models/{model}:predict", true),
            ("/v1/models/{model}/versions/{version}", false),
            ("/v1/models/{model}/versions/{version}/metadata", false),
            ("/v1/models/{model}/versions/{version}:predict", true),
        ],
        Dialect::Flask => &[("/health", false)],
        Dialect::Vertex => &[],
    }
}

/// The name of the server or platform with an API.
pub(crate) const fn product(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::TorchServe => "TorchServe",
        Dialect::SageMaker => "SageMaker",
        Dialect::Vertex => "Vertex AI",
        Dialect::AzureMl => "Azure Machine Learning",
        Dialect::KServeV1 => "KServe",
        Dialect::TensorFlowServing => "TensorFlow Serving",
        Dialect::Flask => "a Flask server",
    }
}

/// How an API sends inference requests.
pub(crate) fn predict_api(dialect: Dialect) -> &'static PredictApi {
    match dialect {
        Dialect::TorchServe => &torchserve::API,
        Dialect::SageMaker => &sagemaker::API,
        Dialect::Vertex => &vertex::API,
        Dialect::AzureMl => &azureml::API,
        Dialect::KServeV1 | Dialect::TensorFlowServing => &v1::API,
        Dialect::Flask => &predict_api::PREDICT,
    }
}

/// Answers everything but inference requests.
pub(crate) async fn describe(
    service: &ModelService,
    ForeignRoute { dialect, call }: &ForeignRoute,
) -> Result<HttpResponse, ServeError> {
    let is_ready = service.is_ready();
    match (dialect, call) {
        (Dialect::TorchServe, ForeignCall::Probe) => Ok(torchserve::ping(is_ready)),
        (Dialect::TorchServe, ForeignCall::Models) => Ok(torchserve::models(service)),
        (Dialect::TorchServe, ForeignCall::Model(model)) => torchserve::model(service, model),
        (Dialect::AzureMl, ForeignCall::Probe) => Ok(azureml::healthy(is_ready)),
        (Dialect::KServeV1, ForeignCall::Probe) => Ok(kserve::alive()),
        (Dialect::KServeV1, ForeignCall::Models) => Ok(kserve::models(service)),
        (Dialect::KServeV1, ForeignCall::Model(model)) => kserve::model(service, model),
        (Dialect::TensorFlowServing, ForeignCall::Model(model)) => tensorflow::status(service, model),
        (Dialect::TensorFlowServing, ForeignCall::Metadata(model)) => {
            tensorflow::metadata(service, model).await
        }
        (Dialect::Flask, ForeignCall::Health) => Ok(flask::health(service)),
        // The container contracts of SageMaker and Vertex AI read nothing but the status.
        _ => Ok(response::full(super::info::probe_status(is_ready), "application/json", "")),
    }
}

/// An error as the clients of an API expect it.
pub(crate) fn error(dialect: Dialect, error: &ServeError) -> HttpResponse {
    let status = response::status_of(error);
    let body = match dialect {
        Dialect::TorchServe => json!({
            "code": status.as_u16(), "type": torchserve::exception(error, status), "message": error.to_string(),
        }),
        Dialect::AzureMl => json!({ "message": error.to_string() }),
        _ => json!({ "error": error.to_string() }),
    };
    response::error_with(error, &body)
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).map(HeaderValue::as_bytes).unwrap_or_default();
    accepted.windows(9).any(|part| part == b"text/html")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::route::ModelName;
    use crate::settings::VertexRoutes;

    fn model(name: &str, version: Option<&str>) -> ModelName {
        ModelName { name: name.to_owned(), version: version.map(str::to_owned) }
    }

    fn route(enabled: &[Dialect], method: &Method, path: &str) -> Result<Option<ForeignRoute>, String> {
        let mut dialects = Dialects::new(enabled.to_vec());
        dialects.vertex =
            VertexRoutes { health: "/v1/deployed".to_owned(), predict: "/v1/deployed:predict".to_owned() };
        dialects.route(method, path, &HeaderMap::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn documented_paths_are_routed() {
        use ForeignCall::{Health, Metadata, Model, Models, Predict, Probe};
        for (dialect, method, path, call) in [
            (Dialect::TorchServe, Method::GET, "/ping", Probe),
            (Dialect::TorchServe, Method::POST, "/predictions/m", Predict(Some(model("m", None)))),
            (Dialect::TorchServe, Method::PUT, "/predictions/m/2.0", Predict(Some(model("m", Some("2.0"))))),
            (Dialect::TorchServe, Method::GET, "/models", Models),
            (Dialect::TorchServe, Method::GET, "/models/m/all", Model(model("m", Some("all")))),
            (Dialect::SageMaker, Method::GET, "/ping", Probe),
            (Dialect::SageMaker, Method::POST, "/invocations", Predict(None)),
            (Dialect::Vertex, Method::GET, "/v1/deployed", Probe),
            (Dialect::Vertex, Method::POST, "/v1/deployed:predict", Predict(None)),
            (Dialect::AzureMl, Method::GET, "/", Probe),
            (Dialect::AzureMl, Method::POST, "/score", Predict(None)),
            (Dialect::KServeV1, Method::GET, "/", Probe),
            (Dialect::KServeV1, Method::GET, "/v1/models", Models),
            (Dialect::KServeV1, Method::GET, "/v1/models/m", Model(model("m", None))),
            (Dialect::KServeV1, Method::POST, "/v1/models/m:predict", Predict(Some(model("m", None)))),
            (
                Dialect::TensorFlowServing,
                Method::GET,
                "/v1/models/m/versions/3",
                Model(model("m", Some("3"))),
            ),
            (Dialect::TensorFlowServing, Method::GET, "/v1/models/m/metadata", Metadata(model("m", None))),
            (
                Dialect::TensorFlowServing,
                Method::POST,
                "/v1/models/a%20b/versions/3:predict",
                Predict(Some(model("a b", Some("3")))),
            ),
            (Dialect::Flask, Method::GET, "/health", Health),
        ] {
            let found = route(&[dialect], &method, path).unwrap();
            assert_eq!(found, Some(ForeignRoute { dialect, call }), "{path}");
        }
    }

    #[test]
    fn described_paths_are_routed() {
        for dialect in [
            Dialect::TorchServe,
            Dialect::SageMaker,
            Dialect::Vertex,
            Dialect::AzureMl,
            Dialect::KServeV1,
            Dialect::TensorFlowServing,
            Dialect::Flask,
        ] {
            let dialects = Dialects::new(vec![dialect]);
            assert!(!dialects.described().is_empty(), "{dialect:?}");
            for described in dialects.described() {
                let path = described.path.replace("{model}", "m").replace("{version}", "1");
                let method = if described.is_predict { Method::POST } else { Method::GET };
                let route = dialects.route(&method, &path, &HeaderMap::new()).unwrap().unwrap();
                assert_eq!(matches!(route.call, ForeignCall::Predict(_)), described.is_predict, "{path}");
            }
        }
    }

    #[test]
    fn other_paths_and_those_of_other_apis_are_left_alone() {
        for (dialect, path) in [
            (Dialect::SageMaker, "/predictions/m"),
            (Dialect::TorchServe, "/predictions"),
            (Dialect::TorchServe, "/predict"),
            (Dialect::Vertex, "/predict"),
            (Dialect::KServeV1, "/v1/models/m:explain"),
            (Dialect::TensorFlowServing, "/v1/models/m:classify"),
            (Dialect::TensorFlowServing, "/v1/models"),
            (Dialect::TensorFlowServing, "/v1/models/m/labels/stable:predict"),
            (Dialect::Flask, "/predict"),
        ] {
            assert_eq!(route(&[dialect], &Method::POST, path), Ok(None), "{dialect:?} {path}");
        }
        assert_eq!(route(&[], &Method::GET, "/ping"), Ok(None));
    }

    #[test]
    fn the_first_api_with_a_path_answers() {
        let both = [Dialect::SageMaker, Dialect::TorchServe];
        let found = route(&both, &Method::GET, "/ping").unwrap().unwrap();
        assert_eq!(found.dialect, Dialect::SageMaker);
        assert_eq!(
            route(&both, &Method::GET, "/invocations"),
            Err("method not allowed: /invocations supports POST".to_owned())
        );
    }

    #[test]
    fn a_browser_gets_the_page() {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("text/html,*/*"))]);
        let dialects = Dialects::new(vec![Dialect::AzureMl]);
        assert_eq!(dialects.route(&Method::GET, "/", &headers).unwrap(), None);
    }
}
