//! Existing resources that a deployment uses: their details in Azure, before anything is planned.
//!
//! Their regions and the hosts of their own APIs come from Azure. Both restrict a plan, and are
//! never derived from it.

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};
use cudock_facts::services::AzureService;
use serde_json::Value;

use crate::call::Call;
use crate::preflight::codes;
use crate::services::backend::lookup::backend;
use crate::services::bodies::names::{Existing, Names, is_name};
use crate::services::bodies::read::text;
use crate::services::bodies::request::get;
use crate::services::error::TranslationError;
use crate::services::existing::{ExistingKind, ExistingScope, bare_region};
use crate::spec::{ExistingDetails, ExistingResources, ProfileDetails};

impl ExistingResources {
    /// The account, workspace or environment that a deployment to a service uses, and its name.
    fn of(&self, service: AzureService) -> Option<(&'static dyn ExistingKind, &str)> {
        let kind = backend(service).existing_kind()?;
        kind.name(self).map(|name| (kind, name))
    }

    /// The same in words: "the Batch account `shared/gpubatch`".
    pub fn description(&self, service: AzureService) -> Option<String> {
        self.of(service).map(|(kind, name)| format!("the {} `{name}`", kind.noun()))
    }

    /// Whether machines of it exist, so that a size is not chosen among all.
    pub fn has_nodes(&self, service: AzureService) -> bool {
        self.of(service).is_some_and(|(kind, _)| kind.nodes(self).is_some()) && self.details.sizes.is_some()
    }

    /// The request for it; none if the service uses none.
    pub fn call(&self, service: AzureService, subscription: &str) -> Result<Option<Call>, TranslationError> {
        let Some((kind, name)) = self.of(service) else { return Ok(None) };
        let existing = Existing::required(name, format!("a {}", kind.noun()))?;
        let names = Names { subscription, run_id: "" };
        Ok(Some(get(&names.existing(existing, kind.resource_type()), kind.version())))
    }

    /// Takes its response; none if it does not exist.
    pub fn read(&mut self, facts: &Facts, service: AzureService, response: Option<&Value>) {
        self.read_resource(service, response);
        self.details.sizes = self.details.profiles.as_deref().map(|profiles| gpu_profiles(facts, profiles));
    }

    /// The same, without the sizes of its machines.
    pub fn read_resource(&mut self, service: AzureService, response: Option<&Value>) {
        let Some((kind, name)) = self.of(service) else { return };
        let Some(response) = response else {
            let message = format!("the subscription has no {} `{name}`", kind.noun());
            self.details.missing = Some(missing(message, kind.list()));
            return;
        };
        self.details = ExistingDetails {
            region: text(response, "/location").map(bare_region),
            endpoint: kind.endpoint(response),
            profiles: kind.profiles(response),
            sizes: None,
            missing: None,
        };
    }

    /// The request for the pool or cluster in it, whose machines exist; none if there is none.
    pub fn nodes_call(
        &self,
        service: AzureService,
        subscription: &str,
    ) -> Result<Option<Call>, TranslationError> {
        let Some((kind, name)) = self.of(service) else { return Ok(None) };
        let Some(nodes) = kind.nodes(self) else { return Ok(None) };
        if !is_name(nodes) {
            return Err(TranslationError::new(format!("`{nodes}` is not the name of a pool or cluster")));
        }
        let existing = Existing::required(name, format!("a {}", kind.noun()))?;
        let id = Names { subscription, run_id: "" }.existing(existing, kind.resource_type());
        let scope = ExistingScope { id, name: existing.name, details: &self.details };
        Ok(Some(kind.nodes_call(&scope, nodes)))
    }

    /// Takes its response; none if it does not exist.
    pub fn read_nodes(&mut self, facts: &Facts, service: AzureService, response: Option<&Value>) {
        let Some((kind, name)) = self.of(service) else { return };
        let Some(response) = response else {
            let (group, own) = name.split_once('/').unwrap_or_default();
            let (what, list) = kind.nodes_list(group, own, &self.details);
            let nodes = kind.nodes(self).unwrap_or_default();
            let message = format!("the {} `{name}` has no {what} `{nodes}`", kind.noun());
            self.details.missing = Some(missing(message, &list));
            return;
        };
        let size = text(response, "/vmSize").or_else(|| text(response, "/properties/properties/vmSize"));
        self.details.sizes = size.map(|size| vec![known_size(facts, size)]);
        // A cluster may be in another region than its workspace.
        let region = text(response, "/properties/computeLocation").map(bare_region);
        self.details.region = region.or(self.details.region.take());
    }
}

fn missing(message: String, fix: &str) -> Finding {
    Finding::new(codes::RESOURCE_NOT_FOUND, Severity::Error, message, fix)
}

/// A size as the tables spell it: services return it in any case.
fn known_size(facts: &Facts, size: &str) -> String {
    facts.sizes().find(size).one().map_or_else(|| size.to_owned(), |row| row.name.clone())
}

/// The types of profiles with GPUs, which are sizes for a plan.
fn gpu_profiles(facts: &Facts, profiles: &[ProfileDetails]) -> Vec<String> {
    let known = &facts.services().profile;
    let found = profiles
        .iter()
        .filter_map(|profile| known.iter().find(|row| row.name.eq_ignore_ascii_case(&profile.kind)));
    found.map(|row| row.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resources() -> ExistingResources {
        ExistingResources {
            workspace: Some("team/lab".to_owned()),
            batch_account: Some("team/batch".to_owned()),
            container_apps_environment: Some("team/apps".to_owned()),
            pool: Some("nodes".to_owned()),
            cluster: Some("gpus".to_owned()),
            ..ExistingResources::default()
        }
    }

    #[test]
    fn region_and_host_are_those_of_the_answer() {
        let cases = [
            (
                AzureService::Batch,
                json!({"location": "West Europe", "properties": {"accountEndpoint": "batch.westeurope.batch.azure.com"}}),
                Some("batch.westeurope.batch.azure.com"),
            ),
            (
                AzureService::Ml,
                json!({"location": "westeurope", "properties": {"discoveryUrl": "https://westeurope.api.azureml.ms/discovery"}}),
                Some("westeurope.api.azureml.ms"),
            ),
            (AzureService::ContainerApps, json!({"location": "WestEurope", "properties": {}}), None),
        ];
        for (service, response, endpoint) in cases {
            let mut resources = resources();
            assert!(
                resources
                    .call(service, "s")
                    .unwrap()
                    .unwrap()
                    .path
                    .starts_with("/subscriptions/s/resourceGroups/team/")
            );
            resources.read(&Facts::embedded(), service, Some(&response));
            assert_eq!(resources.details.region.as_deref(), Some("westeurope"), "{service:?}");
            assert_eq!(resources.details.endpoint.as_deref(), endpoint, "{service:?}");
        }
        assert_eq!(resources().call(AzureService::Vm, "s"), Ok(None));
    }

    #[test]
    fn machines_that_exist_are_the_sizes_of_a_plan() {
        let cases = [
            (AzureService::Batch, json!({"vmSize": "standard_nc4as_t4_v3"}), "Standard_NC4as_T4_v3", None),
            (
                AzureService::Ml,
                json!({"properties": {"computeLocation": "North Europe", "properties": {"vmSize": "STANDARD_D4S_V5"}}}),
                "STANDARD_D4S_V5",
                Some("northeurope"),
            ),
        ];
        for (service, response, size, region) in cases {
            let mut resources = resources();
            resources.read_nodes(&Facts::embedded(), service, Some(&response));
            assert_eq!(resources.details.sizes, Some(vec![size.to_owned()]));
            assert_eq!(resources.details.region.as_deref(), region);
        }
        let mut resources = resources();
        let profile = |name: &str, kind: &str| json!({"name": name, "workloadProfileType": kind});
        let profiles = [
            profile("Consumption", "Consumption"),
            profile("mine", "consumption-gpu-nc8as-t4"),
            profile("d", "D4"),
        ];
        resources.read(
            &Facts::embedded(),
            AzureService::ContainerApps,
            Some(&json!({"properties": {"workloadProfiles": profiles}})),
        );
        assert_eq!(resources.details.sizes, Some(vec!["Consumption-GPU-NC8as-T4".to_owned()]));
    }

    #[test]
    fn what_does_not_exist_is_named_with_what_to_do() {
        for (service, expected) in [
            (AzureService::Ml, "no Machine Learning workspace `team/lab`"),
            (AzureService::Batch, "no Batch account `team/batch`"),
            (AzureService::ContainerApps, "no Container Apps environment `team/apps`"),
        ] {
            let mut resources = resources();
            resources.read(&Facts::embedded(), service, None);
            let missing = resources.details.missing.unwrap();
            assert!(missing.message.contains(expected) && missing.fix.starts_with("az "), "{missing:?}");
        }
        let mut resources = resources();
        resources.read_nodes(&Facts::embedded(), AzureService::Batch, None);
        assert!(resources.details.missing.unwrap().message.contains("`team/batch` has no pool `nodes`"));
    }
}
