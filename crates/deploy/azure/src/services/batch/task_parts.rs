//! What tasks of all kinds have in common.

use std::time::Duration;

use serde_json::{Value, json};

use crate::services::bodies::request::{iso_8601, non_empty};
use crate::spec::{DeploymentSpec, SpecVariable};

/// The mount point of checkpoint storage, below the directory of all mounts.
pub(super) const CHECKPOINTS: &str = "checkpoints";
/// RDMA pins the memory that it sends from.
pub(super) const LOCKED_MEMORY: &str = "--ulimit memlock=-1";
/// All devices of the directory: one for each link, and one for connections.
pub(super) const INFINIBAND: &str = "--device=/dev/infiniband";

/// The limits of a job or task.
pub(super) fn constraints(time_limit: Duration, retries: u32) -> Value {
    json!({"maxWallClockTime": iso_8601(time_limit), "maxTaskRetryCount": retries})
}

/// The variables, with empty values for secrets, which are inserted when the request is sent.
pub(super) fn variables(spec: &DeploymentSpec) -> Option<Vec<Value>> {
    let variable = |variable: &SpecVariable| match variable {
        SpecVariable::Plain { name, value } => json!({"name": name, "value": value}),
        SpecVariable::Secret { name, .. } => json!({"name": name, "value": ""}),
    };
    non_empty(spec.variables.iter().map(variable))
}
