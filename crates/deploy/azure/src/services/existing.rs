//! Resources that a deployment uses and did not create: what Azure says about them, before anything is planned.
//!
//! Where they are and which host their own API has is theirs to tell. Both restrict a plan, and are never derived from it.

use cudock_facts::finding::{Finding, Severity};
use cudock_http::Method;
use serde_json::Value;

use crate::call::{Call, Plane};
use crate::preflight::codes;
use crate::services::names::{Existing, Names, is_name};
use crate::services::read::{list, text};
use crate::services::request::get;
use crate::services::{TranslationError, batch, container_apps, facts, ml};
use crate::spec::{ExistingDetails, ExistingResources, ProfileDetails, Target};

/// A kind of resource that may exist before a deployment.
struct Kind {
    /// In words: "Batch account".
    noun: &'static str,
    resource_type: &'static str,
    version: &'static str,
    /// The command that lists those that exist.
    list: &'static str,
}

const ACCOUNT: Kind = Kind {
    noun: "Batch account",
    resource_type: batch::ACCOUNTS,
    version: batch::ACCOUNT_VERSION,
    list: "az batch account list --output table",
};
const WORKSPACE: Kind = Kind {
    noun: "Machine Learning workspace",
    resource_type: ml::WORKSPACES,
    version: ml::VERSION,
    list: "az ml workspace list --output table, or create one: az ml workspace create",
};
const ENVIRONMENT: Kind = Kind {
    noun: "Container Apps environment",
    resource_type: container_apps::ENVIRONMENTS,
    version: container_apps::VERSION,
    list: "az containerapp env list --output table",
};

impl ExistingResources {
    /// The account, workspace or environment that a deployment to a service uses, and its name.
    fn of(&self, target: Target) -> Option<(&'static Kind, &str)> {
        let (kind, name) = match target {
            Target::Batch => (&ACCOUNT, &self.batch_account),
            Target::Ml => (&WORKSPACE, &self.workspace),
            Target::ContainerApps => (&ENVIRONMENT, &self.container_apps_environment),
            Target::Vm | Target::Aci => return None,
        };
        name.as_deref().map(|name| (kind, name))
    }

    /// The same in words: "the Batch account `shared/gpubatch`".
    pub fn description(&self, target: Target) -> Option<String> {
        self.of(target).map(|(kind, name)| format!("the {} `{name}`", kind.noun))
    }

    /// The request for it; none if the service uses none.
    pub fn call(&self, target: Target, subscription: &str) -> Result<Option<Call>, TranslationError> {
        let Some((kind, name)) = self.of(target) else { return Ok(None) };
        let existing = Existing::required(name, format!("a {}", kind.noun))?;
        let names = Names { subscription, run_id: "" };
        Ok(Some(get(&names.existing(existing, kind.resource_type), kind.version)))
    }

    /// Takes its answer; none if it does not exist.
    pub fn read(&mut self, target: Target, answer: Option<&Value>) {
        let Some((kind, name)) = self.of(target) else { return };
        let Some(answer) = answer else {
            let message = format!("the subscription has no {} `{name}`", kind.noun);
            self.details.missing = Some(missing(message, kind.list));
            return;
        };
        let profiles = match target {
            Target::ContainerApps => Some(profiles(answer)),
            _ => None,
        };
        self.details = ExistingDetails {
            region: text(answer, "/location").map(bare_region),
            endpoint: endpoint(target, answer),
            sizes: profiles.as_deref().map(gpu_profiles),
            profiles,
            missing: None,
        };
    }

    /// The request for the pool or cluster in it, whose machines exist; none if there is none.
    pub fn nodes_call(&self, target: Target, subscription: &str) -> Result<Option<Call>, TranslationError> {
        let nodes = match target {
            Target::Batch => &self.pool,
            Target::Ml => &self.cluster,
            Target::Vm | Target::ContainerApps | Target::Aci => &None,
        };
        let (Some(nodes), Some((kind, name))) = (nodes, self.of(target)) else { return Ok(None) };
        if !is_name(nodes) {
            return Err(TranslationError::new(format!("`{nodes}` is not the name of a pool or cluster")));
        }
        let existing = Existing::required(name, format!("a {}", kind.noun))?;
        if target == Target::Ml {
            let names = Names { subscription, run_id: "" };
            let workspace = names.existing(existing, kind.resource_type);
            return Ok(Some(get(&format!("{workspace}/computes/{nodes}"), kind.version)));
        }
        let plane = Plane::Batch {
            account: existing.name.to_owned(),
            region: self.details.region.clone().unwrap_or_default(),
            endpoint: self.details.endpoint.clone(),
        };
        let path = format!("/pools/{nodes}?api-version={}", batch::VERSION);
        Ok(Some(Call { method: Method::GET, plane, path, body: None }))
    }

    /// Takes its answer; none if it does not exist.
    pub fn read_nodes(&mut self, target: Target, answer: Option<&Value>) {
        let Some((kind, name)) = self.of(target) else { return };
        let Some(answer) = answer else {
            let (group, own) = name.split_once('/').unwrap_or_default();
            let (what, nodes, list) = if target == Target::Ml {
                ("cluster", &self.cluster, format!("az ml compute list -g {group} -w {own} --output table"))
            } else {
                let host = self.details.endpoint.as_deref().unwrap_or("HOST");
                let list = format!("az batch pool list --account-name {own} --account-endpoint {host}");
                ("pool", &self.pool, list)
            };
            let nodes = nodes.as_deref().unwrap_or_default();
            let message = format!("the {} `{name}` has no {what} `{nodes}`", kind.noun);
            self.details.missing = Some(missing(message, &list));
            return;
        };
        let size = text(answer, "/vmSize").or_else(|| text(answer, "/properties/properties/vmSize"));
        self.details.sizes = size.map(|size| vec![known_size(size)]);
        // A cluster may be in another region than its workspace.
        let region = text(answer, "/properties/computeLocation").map(bare_region);
        self.details.region = region.or(self.details.region.take());
    }
}

fn missing(message: String, fix: &str) -> Finding {
    Finding::new(codes::RESOURCE_NOT_FOUND, Severity::Error, message, fix)
}

/// The host of a resource's own API, as the resource tells it.
fn endpoint(target: Target, answer: &Value) -> Option<String> {
    match target {
        Target::Batch => text(answer, "/properties/accountEndpoint").map(str::to_owned),
        // Where services are discovered is where the run history is, too.
        Target::Ml => {
            let (_, rest) = text(answer, "/properties/discoveryUrl")?.split_once("://")?;
            rest.split('/').next().map(str::to_owned)
        }
        Target::Vm | Target::ContainerApps | Target::Aci => None,
    }
}

/// A region as the tables write it: `West Europe` is `westeurope`.
pub fn bare_region(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// A size as the tables write it: services answer in any case.
fn known_size(size: &str) -> String {
    facts().sizes().find(size).one().map_or_else(|| size.to_owned(), |row| row.name.clone())
}

fn profiles(environment: &Value) -> Vec<ProfileDetails> {
    let profile = |one: &Value| {
        Some(ProfileDetails {
            name: text(one, "/name")?.to_owned(),
            kind: text(one, "/workloadProfileType")?.to_owned(),
        })
    };
    list(environment, "/properties/workloadProfiles").iter().filter_map(profile).collect()
}

/// The types of profiles with GPUs, which are sizes for a plan.
fn gpu_profiles(profiles: &[ProfileDetails]) -> Vec<String> {
    let known = &facts().services().profile;
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
                Target::Batch,
                json!({"location": "West Europe", "properties": {"accountEndpoint": "batch.westeurope.batch.azure.com"}}),
                Some("batch.westeurope.batch.azure.com"),
            ),
            (
                Target::Ml,
                json!({"location": "westeurope", "properties": {"discoveryUrl": "https://westeurope.api.azureml.ms/discovery"}}),
                Some("westeurope.api.azureml.ms"),
            ),
            (Target::ContainerApps, json!({"location": "WestEurope", "properties": {}}), None),
        ];
        for (target, answer, endpoint) in cases {
            let mut resources = resources();
            assert!(
                resources
                    .call(target, "s")
                    .unwrap()
                    .unwrap()
                    .path
                    .starts_with("/subscriptions/s/resourceGroups/team/")
            );
            resources.read(target, Some(&answer));
            assert_eq!(resources.details.region.as_deref(), Some("westeurope"), "{target:?}");
            assert_eq!(resources.details.endpoint.as_deref(), endpoint, "{target:?}");
        }
        assert_eq!(resources().call(Target::Vm, "s"), Ok(None));
    }

    #[test]
    fn machines_that_exist_are_the_sizes_of_a_plan() {
        let cases = [
            (Target::Batch, json!({"vmSize": "standard_nc4as_t4_v3"}), "Standard_NC4as_T4_v3", None),
            (
                Target::Ml,
                json!({"properties": {"computeLocation": "North Europe", "properties": {"vmSize": "STANDARD_D4S_V5"}}}),
                "STANDARD_D4S_V5",
                Some("northeurope"),
            ),
        ];
        for (target, answer, size, region) in cases {
            let mut resources = resources();
            resources.read_nodes(target, Some(&answer));
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
        resources.read(Target::ContainerApps, Some(&json!({"properties": {"workloadProfiles": profiles}})));
        assert_eq!(resources.details.sizes, Some(vec!["Consumption-GPU-NC8as-T4".to_owned()]));
    }

    #[test]
    fn what_does_not_exist_is_named_with_what_to_do() {
        for (target, words) in [
            (Target::Ml, "no Machine Learning workspace `team/lab`"),
            (Target::Batch, "no Batch account `team/batch`"),
            (Target::ContainerApps, "no Container Apps environment `team/apps`"),
        ] {
            let mut resources = resources();
            resources.read(target, None);
            let missing = resources.details.missing.unwrap();
            assert!(missing.message.contains(words) && missing.fix.starts_with("az "), "{missing:?}");
        }
        let mut resources = resources();
        resources.read_nodes(Target::Batch, None);
        assert!(resources.details.missing.unwrap().message.contains("`team/batch` has no pool `nodes`"));
    }
}
