//! Which path means what.

use cudock_base::percent;
use hyper::Method;

use crate::ServeError;

/// What a request asks for. Names are as they stand in the path, without percent signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `POST /predict[/NAME[/VERSION]]`
    Predict(Option<ModelName>),
    /// `GET /health`
    Health,
    /// `GET /ready`, `/v2/health/ready`
    Ready,
    /// `GET /live`, `/v2/health/live`
    Live,
    /// `GET /metrics`
    Metrics,
    /// `GET /status`
    Status,
    /// `GET /` and `/assets/…`
    Page,
    /// `GET /v2`
    ServerMetadata,
    /// `GET /v2/models/NAME[/versions/VERSION]`
    ModelMetadata(ModelName),
    /// `GET …/ready`
    ModelReady(ModelName),
    /// `GET …/config`
    ModelConfig(ModelName),
    /// `GET …/stats`, and `GET /v2/models/stats` of all models
    ModelStatistics(Option<ModelName>),
    /// `POST …/infer`
    Infer(ModelName),
    /// `POST /v2/repository/index`
    RepositoryIndex,
    /// `POST /v2/repository/models/NAME/load`
    Load(String),
}

/// A model as a path names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelName {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
}

impl Route {
    /// The route of a method and path.
    pub(crate) fn of(method: &Method, path: &str) -> Result<Self, ServeError> {
        let trimmed = path.strip_suffix('/').unwrap_or(path);
        let parts: Vec<&str> = trimmed.split('/').skip(1).collect();
        let route = match parts.as_slice() {
            [] | [""] | ["assets", ..] => Self::Page,
            ["predict"] => Self::Predict(None),
            ["predict", name] => Self::Predict(Some(named(name, None)?)),
            ["predict", name, version] => Self::Predict(Some(named(name, Some(version))?)),
            ["health" | "healthz"] => Self::Health,
            ["ready" | "readyz"] | ["v2", "health", "ready"] => Self::Ready,
            ["live" | "livez"] | ["v2", "health", "live"] => Self::Live,
            ["metrics"] => Self::Metrics,
            ["status"] => Self::Status,
            ["v2"] => Self::ServerMetadata,
            ["v2", "repository", "index"] => Self::RepositoryIndex,
            ["v2", "repository", "models", name, "load"] => Self::Load(decoded(name)?),
            ["v2", "repository", "models", _, "unload"] => {
                let way_out = "a model is unloaded by taking its file out of the folder, with --watch";
                return Err(ServeError::NotFound(way_out.to_owned()));
            }
            ["v2", "models", name, "versions", version, rest @ ..] => {
                Self::of_model(named(name, Some(version))?, rest, path)?
            }
            ["v2", "models", "stats"] => Self::ModelStatistics(None),
            ["v2", "models", name, rest @ ..] => Self::of_model(named(name, None)?, rest, path)?,
            _ => return Err(nothing_at(path)),
        };
        let allowed = route.allowed();
        let fits = allowed.split(", ").any(|name| name == method.as_str());
        if !fits {
            return Err(ServeError::MethodNotAllowed { path: path.to_owned(), allowed });
        }
        Ok(route)
    }

    fn of_model(model: ModelName, rest: &[&str], path: &str) -> Result<Self, ServeError> {
        Ok(match rest {
            [] => Self::ModelMetadata(model),
            ["ready"] => Self::ModelReady(model),
            ["config"] => Self::ModelConfig(model),
            ["stats"] => Self::ModelStatistics(Some(model)),
            ["infer"] => Self::Infer(model),
            _ => return Err(nothing_at(path)),
        })
    }

    fn allowed(&self) -> &'static str {
        match self {
            Self::Predict(_) | Self::Infer(_) | Self::RepositoryIndex | Self::Load(_) => "POST",
            _ => "GET, HEAD",
        }
    }

    /// Whether it is answered without a key: what probes ask, and the page, which holds nothing and asks for one.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Ready | Self::Live | Self::Page)
    }
}

fn nothing_at(path: &str) -> ServeError {
    ServeError::NotFound(format!(
        "nothing is at {path}; POST /predict and /v2/models/NAME/infer, GET / and /health are"
    ))
}

fn named(name: &str, version: Option<&&str>) -> Result<ModelName, ServeError> {
    Ok(ModelName { name: decoded(name)?, version: version.map(|version| decoded(version)).transpose()? })
}

fn decoded(text: &str) -> Result<String, ServeError> {
    percent::decode(text)
        .ok_or_else(|| ServeError::BadRequest(format!("`{text}` has a percent sign that encodes nothing")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    fn model(name: &str, version: Option<&str>) -> ModelName {
        ModelName { name: name.to_owned(), version: version.map(str::to_owned) }
    }

    #[test]
    fn paths_mean_what_the_protocols_say() {
        let get = |path| Route::of(&Method::GET, path).unwrap();
        let post = |path| Route::of(&Method::POST, path).unwrap();
        assert_eq!(get("/"), Route::Page);
        assert_eq!(get("/assets/style.css"), Route::Page);
        assert_eq!(post("/predict"), Route::Predict(None));
        assert_eq!(post("/predict/a%20b/2"), Route::Predict(Some(model("a b", Some("2")))));
        assert_eq!(get("/v2/"), Route::ServerMetadata);
        assert_eq!(get("/v2/health/ready"), Route::Ready);
        assert_eq!(get("/v2/models/m"), Route::ModelMetadata(model("m", None)));
        assert_eq!(get("/v2/models/m/versions/3/ready"), Route::ModelReady(model("m", Some("3"))));
        assert_eq!(get("/v2/models/stats"), Route::ModelStatistics(None));
        assert_eq!(get("/v2/models/m/stats"), Route::ModelStatistics(Some(model("m", None))));
        assert_eq!(post("/v2/models/m/infer"), Route::Infer(model("m", None)));
        assert_eq!(post("/v2/repository/models/m/load"), Route::Load("m".to_owned()));
    }

    #[test]
    fn a_known_path_with_another_method_says_which_it_takes() {
        let wrong = Route::of(&Method::GET, "/predict").unwrap_err();
        assert_eq!(wrong.to_string(), "/predict takes POST");
        let wrong = Route::of(&Method::POST, "/health").unwrap_err();
        assert_eq!(wrong.to_string(), "/health takes GET, HEAD");
    }

    #[test]
    fn unknown_paths_and_broken_escapes_are_refused() {
        assert!(matches!(Route::of(&Method::GET, "/nothing"), Err(ServeError::NotFound(_))));
        assert!(matches!(Route::of(&Method::POST, "/predict/a%2"), Err(ServeError::BadRequest(_))));
        assert!(matches!(Route::of(&Method::POST, "/predict/%ff"), Err(ServeError::BadRequest(_))));
        assert!(matches!(Route::of(&Method::POST, "/v2/models/m/infer/x"), Err(ServeError::NotFound(_))));
    }
}
