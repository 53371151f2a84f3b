//! The translation of a workload to each service, and the reading of their answers.

mod error;

pub use error::TranslationError;

use serde_json::Value;

use crate::call::Call;
use crate::deployment::{Deployment, DeploymentIdentity};
use crate::spec::DeploymentSpec;
use crate::status::Status;

/// All requests that create, observe and delete a workload.
///
/// # Errors
///
/// If the service cannot run it, or the configuration makes no sense.
pub fn deployment(spec: &DeploymentSpec) -> Result<Deployment, TranslationError> {
    Err(TranslationError::new(format!("{:?} is not supported", spec.target)))
}

impl DeploymentIdentity {
    /// The requests whose responses tell the state.
    pub fn status_calls(&self) -> Vec<Call> {
        Vec::new()
    }

    /// The state according to the responses to [`Self::status_calls`]: one for each, none for 404.
    pub fn status(&self, _answers: &[Option<Value>]) -> Status {
        Status {
            state: crate::status::DeploymentState::Starting,
            phase: crate::deployment::Phase::Create,
            detail: None,
            exit_code: None,
            url: None,
            billed_from: None,
            billed_until: None,
        }
    }

    /// The requests whose responses are the logs.
    pub fn log_calls(&self) -> Vec<Call> {
        Vec::new()
    }
}
