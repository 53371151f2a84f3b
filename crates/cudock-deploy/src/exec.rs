//! Commands in a deployment that runs.

use cudock_azure::ExecOutput;

use crate::cloud::{ApiError, ApiErrorReason, CloudApi};
use crate::error::DeployError;
use crate::journal::DeploymentRecord;

/// Runs a command in a deployment's container and waits for its end. The journal is about what exists and what it costs,
/// which a command does not change.
pub fn exec(
    cloud: &dyn CloudApi,
    record: &DeploymentRecord,
    command: &[String],
) -> Result<ExecOutput, DeployError> {
    let step = record.identity.exec_step(command)?;
    let cannot = |error| DeployError::cloud(format!("cannot run a command in `{}`", record.name), error);
    let reply = cloud.run(&step).map_err(cannot)?;
    let output = ExecOutput::read(&reply.body);
    output.ok_or_else(|| cannot(ApiError::new(ApiErrorReason::Outside, "the answer has no exit code")))
}
