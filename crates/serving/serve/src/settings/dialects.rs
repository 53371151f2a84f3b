//! The other model servers whose APIs are answered.

use cudock_base::Environment;
use cudock_project::Dialect;

/// The other model servers whose clients are answered.
#[derive(Clone, Debug, Default)]
pub struct Dialects {
    /// Where a path belongs to several, the first one answers.
    pub(crate) enabled: Vec<Dialect>,
    pub vertex: VertexRoutes,
}

impl Dialects {
    pub fn new(enabled: Vec<Dialect>) -> Self {
        Self { enabled, vertex: VertexRoutes::default() }
    }
}

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
}
