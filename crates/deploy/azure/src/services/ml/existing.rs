//! Machine Learning workspaces and clusters that exist.

use serde_json::Value;

use crate::services::bodies::read::text;
use crate::services::existing::ExistingKind;
use crate::services::ml::{VERSION, WORKSPACES};
use crate::spec::{ExistingDetails, ExistingResources};

pub(super) struct Workspace;

impl ExistingKind for Workspace {
    fn noun(&self) -> &'static str {
        "Machine Learning workspace"
    }

    fn resource_type(&self) -> &'static str {
        WORKSPACES
    }

    fn version(&self) -> &'static str {
        VERSION
    }

    fn list(&self) -> &'static str {
        "az ml workspace list --output table, or create one: az ml workspace create"
    }

    fn name<'e>(&self, existing: &'e ExistingResources) -> Option<&'e str> {
        existing.workspace.as_deref()
    }

    fn nodes<'e>(&self, existing: &'e ExistingResources) -> Option<&'e str> {
        existing.cluster.as_deref()
    }

    fn nodes_list(&self, group: &str, name: &str, _: &ExistingDetails) -> (&'static str, String) {
        ("cluster", format!("az ml compute list -g {group} -w {name} --output table"))
    }

    /// The host of service discovery, which also serves the run history.
    fn endpoint(&self, response: &Value) -> Option<String> {
        let (_, rest) = text(response, "/properties/discoveryUrl")?.split_once("://")?;
        rest.split('/').next().map(str::to_owned)
    }
}
