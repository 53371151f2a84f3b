//! Container Apps environments that exist.

use serde_json::Value;

use crate::services::bodies::read::{list, text};
use crate::services::container_apps::{ENVIRONMENTS, VERSION};
use crate::services::existing::ExistingKind;
use crate::spec::{ExistingResources, ProfileDetails};

pub(super) struct Environment;

impl ExistingKind for Environment {
    fn noun(&self) -> &'static str {
        "Container Apps environment"
    }

    fn resource_type(&self) -> &'static str {
        ENVIRONMENTS
    }

    fn version(&self) -> &'static str {
        VERSION
    }

    fn list(&self) -> &'static str {
        "az containerapp env list --output table"
    }

    fn name<'e>(&self, existing: &'e ExistingResources) -> Option<&'e str> {
        existing.container_apps_environment.as_deref()
    }

    fn profiles(&self, response: &Value) -> Option<Vec<ProfileDetails>> {
        let profile = |one: &Value| {
            Some(ProfileDetails {
                name: text(one, "/name")?.to_owned(),
                kind: text(one, "/workloadProfileType")?.to_owned(),
            })
        };
        Some(list(response, "/properties/workloadProfiles").iter().filter_map(profile).collect())
    }
}
