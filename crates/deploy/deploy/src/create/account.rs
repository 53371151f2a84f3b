//! The Batch account of a deployment that was not created for it, when the deployment is deleted.
//!
//! Its host is in the journal since the deployment was planned. Entries of earlier versions have none, and an account may be
//! deleted before the deployment is.

use cudock_azure::{DeploymentIdentity, ExistingResources, Plane, Step};

use crate::cloud::{ApiError, ApiErrorReason, CloudApi};
use crate::observe::response_body;

/// The identity and the steps that delete it, with the host of its account.
pub(crate) fn with_host(
    cloud: &dyn CloudApi,
    identity: &DeploymentIdentity,
    cleanup: Vec<Step>,
) -> Result<(DeploymentIdentity, Vec<Step>), ApiError> {
    let mut identity = identity.clone();
    if identity.batch_account.is_none() || identity.endpoint.is_some() {
        return Ok((identity, cleanup));
    }
    identity.endpoint = read(cloud, &identity)?.details.endpoint;
    let located = |mut step: Step| {
        if let Plane::Batch { endpoint, .. } = &mut step.call.plane {
            endpoint.clone_from(&identity.endpoint);
        }
        step
    };
    let cleanup = cleanup.into_iter().map(located).collect();
    Ok((identity, cleanup))
}

/// Whether a step failed because its account does not exist anymore: its host then does not
/// respond.
pub(crate) fn is_gone(
    cloud: &dyn CloudApi,
    identity: &DeploymentIdentity,
    step: &Step,
    error: &ApiError,
) -> bool {
    let may_be_gone =
        error.reason == ApiErrorReason::Outside && matches!(step.call.plane, Plane::Batch { .. });
    may_be_gone && read(cloud, identity).is_ok_and(|account| account.details.missing.is_some())
}

fn read(cloud: &dyn CloudApi, identity: &DeploymentIdentity) -> Result<ExistingResources, ApiError> {
    let mut existing =
        ExistingResources { batch_account: identity.batch_account.clone(), ..ExistingResources::default() };
    // The name was checked when the deployment was planned.
    if let Ok(Some(call)) = existing.call(identity.service, &identity.subscription) {
        let response = response_body(cloud, &call, &mut None)?;
        existing.read_resource(identity.service, response.as_ref());
    }
    Ok(existing)
}
