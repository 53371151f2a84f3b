//! Routes.

use cudock_base::text::percent;
use cudock_server::HttpRejection;
use hyper::Method;

use crate::ServeError;

/// The target of a request. Names are percent-decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Predict(Option<ModelName>),
    Health,
    Ready,
    Live,
    Metrics,
    Status,
    OpenApi,
    Page,
    ServerMetadata,
    ModelMetadata(ModelName),
    ModelReady(ModelName),
    ModelConfig(ModelName),
    /// `GET …/stats`, and `GET /v2/models/stats` of all models
    ModelStatistics(Option<ModelName>),
    Infer(ModelName),
    RepositoryIndex,
    Load(String),
    Unload(String),
}

/// The effect of a request on the models of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelEffect {
    None,
    /// It needs a loaded model, which is loaded if that happens on demand.
    Needs,
    /// It loads or unloads models.
    Changes,
}

/// A model in a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelName {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
}

impl Route {
    pub(crate) fn parse(method: &Method, path: &str) -> Result<Self, ServeError> {
        let route = match path_parts(path).as_slice() {
            [] | [""] | ["assets", ..] => Self::Page,
            ["predict"] => Self::Predict(None),
            ["predict", name] => Self::Predict(Some(parse_model_name(name, None)?)),
            ["predict", name, version] => Self::Predict(Some(parse_model_name(name, Some(version))?)),
            ["health" | "healthz"] => Self::Health,
            ["ready" | "readyz"] | ["v2", "health", "ready"] => Self::Ready,
            ["live" | "livez"] | ["v2", "health", "live"] => Self::Live,
            ["metrics"] => Self::Metrics,
            ["status"] => Self::Status,
            ["openapi.json"] => Self::OpenApi,
            ["v2"] => Self::ServerMetadata,
            ["v2", "repository", "index"] => Self::RepositoryIndex,
            ["v2", "repository", "models", name, "load"] => Self::Load(percent_decode(name)?),
            ["v2", "repository", "models", name, "unload"] => Self::Unload(percent_decode(name)?),
            ["v2", "models", name, "versions", version, rest @ ..] => {
                Self::of_model(parse_model_name(name, Some(version))?, rest, path)?
            }
            ["v2", "models", "stats"] => Self::ModelStatistics(None),
            ["v2", "models", name, rest @ ..] => Self::of_model(parse_model_name(name, None)?, rest, path)?,
            _ => return Err(not_found(path)),
        };
        let allowed = route.allowed();
        if allowed.split(", ").any(|name| name == method.as_str()) {
            return Ok(route);
        }
        Err(method_not_allowed(path, allowed))
    }

    fn of_model(model: ModelName, rest: &[&str], path: &str) -> Result<Self, ServeError> {
        Ok(match rest {
            [] => Self::ModelMetadata(model),
            ["ready"] => Self::ModelReady(model),
            ["config"] => Self::ModelConfig(model),
            ["stats"] => Self::ModelStatistics(Some(model)),
            ["infer"] => Self::Infer(model),
            _ => return Err(not_found(path)),
        })
    }

    fn allowed(&self) -> &'static str {
        match self {
            Self::Predict(_) | Self::Infer(_) | Self::RepositoryIndex | Self::Load(_) | Self::Unload(_) => {
                "POST"
            }
            _ => "GET, HEAD",
        }
    }

    /// The effect of a request on the models.
    pub(crate) fn effect(&self) -> ModelEffect {
        match self {
            Self::Load(_) | Self::Unload(_) => ModelEffect::Changes,
            Self::Predict(_) | Self::Infer(_) | Self::ModelMetadata(_) | Self::ModelConfig(_) => {
                ModelEffect::Needs
            }
            Self::Health
            | Self::Ready
            | Self::Live
            | Self::Metrics
            | Self::Status
            | Self::OpenApi
            | Self::Page
            | Self::ServerMetadata
            | Self::ModelReady(_)
            | Self::ModelStatistics(_)
            | Self::RepositoryIndex => ModelEffect::None,
        }
    }

    /// Whether it needs no API key: probes, and the page, which contains no secrets and prompts for a key.
    pub(crate) fn is_public(&self) -> bool {
        matches!(self, Self::Ready | Self::Live | Self::Page)
    }
}

/// The parts of a path between slashes.
pub(super) fn path_parts(path: &str) -> Vec<&str> {
    path.strip_suffix('/').unwrap_or(path).split('/').skip(1).collect()
}

pub(super) fn method_not_allowed(path: &str, allowed: &'static str) -> ServeError {
    ServeError::MethodNotAllowed { path: path.to_owned(), allowed }
}

fn not_found(path: &str) -> ServeError {
    ServeError::NotFound(format!(
        "not found: {path}; try POST /predict, POST /v2/models/NAME/infer, GET / or GET /health"
    ))
}

pub(super) fn parse_model_name(name: &str, version: Option<&str>) -> Result<ModelName, HttpRejection> {
    Ok(ModelName { name: percent_decode(name)?, version: version.map(percent_decode).transpose()? })
}

fn percent_decode(text: &str) -> Result<String, HttpRejection> {
    percent::decode(text)
        .ok_or_else(|| HttpRejection::BadRequest(format!("invalid percent-encoding in `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str, version: Option<&str>) -> ModelName {
        ModelName { name: name.to_owned(), version: version.map(str::to_owned) }
    }

    #[test]
    fn paths_of_all_protocols_are_routed() {
        let get = |path| Route::parse(&Method::GET, path).unwrap();
        let post = |path| Route::parse(&Method::POST, path).unwrap();
        assert_eq!(get("/"), Route::Page);
        assert_eq!(get("/assets/style.css"), Route::Page);
        assert_eq!(post("/predict"), Route::Predict(None));
        assert_eq!(post("/predict/a%20b/2"), Route::Predict(Some(model("a b", Some("2")))));
        assert_eq!(get("/openapi.json"), Route::OpenApi);
        assert_eq!(get("/v2/"), Route::ServerMetadata);
        assert_eq!(get("/v2/health/ready"), Route::Ready);
        assert_eq!(get("/v2/models/m"), Route::ModelMetadata(model("m", None)));
        assert_eq!(get("/v2/models/m/versions/3/ready"), Route::ModelReady(model("m", Some("3"))));
        assert_eq!(get("/v2/models/stats"), Route::ModelStatistics(None));
        assert_eq!(get("/v2/models/m/stats"), Route::ModelStatistics(Some(model("m", None))));
        assert_eq!(post("/v2/models/m/infer"), Route::Infer(model("m", None)));
        assert_eq!(post("/v2/repository/models/m/load"), Route::Load("m".to_owned()));
        assert_eq!(post("/v2/repository/models/m/unload"), Route::Unload("m".to_owned()));
    }

    #[test]
    fn wrong_methods_unknown_paths_and_invalid_escapes_are_rejected() {
        for (method, path, message) in [
            (Method::GET, "/predict", "method not allowed: /predict supports POST"),
            (Method::POST, "/health", "method not allowed: /health supports GET, HEAD"),
            (Method::GET, "/nothing", "not found: /nothing; try"),
            (Method::POST, "/v2/models/m/infer/x", "not found: /v2/models/m/infer/x; try"),
            (Method::POST, "/predict/a%2", "invalid percent-encoding in `a%2`"),
            (Method::POST, "/predict/%ff", "invalid percent-encoding in `%ff`"),
        ] {
            let error = Route::parse(&method, path).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
