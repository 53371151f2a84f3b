//! Batch accounts and pools that exist.

use cudock_http::Method;
use serde_json::Value;

use crate::call::{Call, Plane};
use crate::services::batch::account::{ACCOUNT_VERSION, ACCOUNTS, VERSION};
use crate::services::bodies::read::text;
use crate::services::existing::{ExistingKind, ExistingScope};
use crate::spec::{ExistingDetails, ExistingResources};

pub(super) struct BatchAccount;

impl ExistingKind for BatchAccount {
    fn noun(&self) -> &'static str {
        "Batch account"
    }

    fn resource_type(&self) -> &'static str {
        ACCOUNTS
    }

    fn version(&self) -> &'static str {
        ACCOUNT_VERSION
    }

    fn list(&self) -> &'static str {
        "az batch account list --output table"
    }

    fn name<'e>(&self, existing: &'e ExistingResources) -> Option<&'e str> {
        existing.batch_account.as_deref()
    }

    fn nodes<'e>(&self, existing: &'e ExistingResources) -> Option<&'e str> {
        existing.pool.as_deref()
    }

    fn nodes_list(&self, _: &str, name: &str, details: &ExistingDetails) -> (&'static str, String) {
        let host = details.endpoint.as_deref().unwrap_or("HOST");
        ("pool", format!("az batch pool list --account-name {name} --account-endpoint {host}"))
    }

    fn nodes_call(&self, scope: &ExistingScope<'_>, nodes: &str) -> Call {
        let plane = Plane::Batch {
            account: scope.name.to_owned(),
            region: scope.details.region.clone().unwrap_or_default(),
            endpoint: scope.details.endpoint.clone(),
        };
        let path = format!("/pools/{nodes}?api-version={VERSION}");
        Call { method: Method::GET, plane, path, body: None }
    }

    fn endpoint(&self, response: &Value) -> Option<String> {
        text(response, "/properties/accountEndpoint").map(str::to_owned)
    }
}
