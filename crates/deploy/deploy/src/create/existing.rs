//! Reads the resources that a deployment uses and does not create, before anything is planned.

use cudock_azure::{Call, ExistingResources};
use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use cudock_project::DeployFlags;
use serde_json::Value;

use crate::cloud::CloudApi;
use crate::error::DeployError;
use crate::observe::response_body;

/// The resources that the flags name, with the details that the cloud reports if there is a
/// connection. Preflight reports those that do not exist.
pub fn read_existing(
    facts: &Facts,
    cloud: Option<&dyn CloudApi>,
    subscription: &str,
    service: AzureService,
    flags: &DeployFlags,
) -> Result<ExistingResources, DeployError> {
    let mut existing = crate::flags::existing(flags);
    let (Some(cloud), Some(description)) = (cloud, existing.description(service)) else {
        return Ok(existing);
    };
    let read = |call: &Call| -> Result<Option<Value>, DeployError> {
        let cannot = |error| DeployError::cloud(format!("cannot read {description}"), error);
        response_body(cloud, call, &mut None).map_err(cannot)
    };
    if let Some(call) = existing.call(service, subscription)? {
        let response = read(&call)?;
        existing.read(facts, service, response.as_ref());
    }
    if existing.details.missing.is_none()
        && let Some(call) = existing.nodes_call(service, subscription)?
    {
        let response = read(&call)?;
        existing.read_nodes(facts, service, response.as_ref());
    }
    Ok(existing)
}
