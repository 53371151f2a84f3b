//! The account, and the requests to its data plane.

use cudock_http::Method;

use crate::call::{Body, Call, Plane};
use crate::deployment::DeploymentIdentity;
use crate::services::bodies::names::Names;
use crate::spec::DeploymentSpec;

pub(super) const ACCOUNT_VERSION: &str = "2024-07-01";
pub(super) const VERSION: &str = "2024-07-01.20.0";
pub(super) const ACCOUNTS: &str = "Microsoft.Batch/batchAccounts";
/// The id of the task of a job without items.
pub(super) const MAIN_TASK: &str = "main";

/// The data plane of an account.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) name: String,
    region: String,
    /// The host of an existing account, according to the account.
    endpoint: Option<String>,
}

impl Account {
    fn new(names: Names<'_>, existing: Option<&String>, region: &str, endpoint: Option<&String>) -> Self {
        let existing = DeploymentIdentity::existing(existing);
        let name = existing.map_or_else(|| names.unique_letters(), |existing| existing.name.to_owned());
        Self { name, region: region.to_owned(), endpoint: endpoint.cloned() }
    }

    pub(super) fn of_spec(spec: &DeploymentSpec) -> Self {
        let existing = &spec.existing;
        let endpoint = existing.details.endpoint.as_ref();
        Self::new(Names::of_spec(spec), existing.batch_account.as_ref(), &spec.region, endpoint)
    }

    pub(super) fn of_identity(identity: &DeploymentIdentity) -> Self {
        let (account, endpoint) = (identity.batch_account.as_ref(), identity.endpoint.as_ref());
        Self::new(identity.names(), account, &identity.region, endpoint)
    }

    pub(super) fn plane(&self) -> Plane {
        let Self { name, region, endpoint } = self.clone();
        Plane::Batch { account: name, region, endpoint }
    }

    pub(super) fn call(&self, method: Method, path: &str, query: &str, body: Option<Body>) -> Call {
        Call { method, plane: self.plane(), path: format!("{path}?api-version={VERSION}{query}"), body }
    }

    pub(super) fn get(&self, path: &str, query: &str) -> Call {
        self.call(Method::GET, path, query, None)
    }
}

pub(super) fn job_path(names: Names<'_>) -> String {
    format!("/jobs/{}", names.unique())
}
