//! Deleting: what is accepted, how long it takes, and what goes along.

use serde_json::json;

use crate::cloud::Cloud;
use crate::resources::resource::Resource;
use crate::resources::target::{GROUP_KIND, Target};
use crate::state::identity::Caller;
use crate::state::operation::{OperationStyle, Progress};
use crate::time::Seconds;
use crate::wire::answer::Answer;

/// How long the deletion of a group with machines takes if they may shut down, and if not.
const GROUP_SECONDS: (Seconds, Seconds) = (300, 80);

impl Cloud {
    pub(crate) fn delete(&mut self, target: &Target, query: &str, caller: &Caller) -> Answer {
        if let Some(denied) = self.deny(caller, &target.key, "delete") {
            return denied;
        }
        let Some(resource) = self.find(&target.key).cloned() else {
            return match target.kind.as_str() {
                GROUP_KIND => Self::not_found(target),
                _ => match target.group_key().filter(|group| self.find(group).is_none()) {
                    Some(group) => Self::not_found(&Target::parse(&group).unwrap()),
                    None => Answer::empty(204),
                },
            };
        };
        if let Some(lock) = self.keys_of("microsoft.authorization/locks").into_iter().find(|lock| {
            let scope = self.resources[lock].target.parent_key();
            *lock != target.key && (target.key.starts_with(&scope) || scope.starts_with(&target.key))
        }) {
            let message = format!(
                "The scope '{}' cannot perform delete operation because following scope(s) are locked: '{lock}'.",
                target.id
            );
            return Answer::error(409, "ScopeLocked", message);
        }
        match target.kind.as_str() {
            GROUP_KIND => self.delete_group(target, query),
            "microsoft.resources/deployments" => self.delete_deployment(&resource),
            "microsoft.containerinstance/containergroups" => match self.refuse_container_group(target) {
                Some(refusal) => refusal,
                None => self.delete_at_once(&resource),
            },
            "microsoft.compute/virtualmachines" => {
                let seconds = if query.to_ascii_lowercase().contains("forcedeletion=true") { 10 } else { 45 };
                self.delete_later(&resource, OperationStyle::Compute, seconds)
            }
            "microsoft.app/managedenvironments" if self.has_apps(&target.key) => Answer::error(
                409,
                "ManagedEnvironmentHasContainerApps",
                "The environment has apps or jobs: delete them first.",
            ),
            "microsoft.machinelearningservices/workspaces/jobs" if resource.ended.is_none() => {
                Answer::error(409, "Conflict", "A job that is running cannot be deleted: cancel it first.")
            }
            "microsoft.app/managedenvironments"
            | "microsoft.app/containerapps"
            | "microsoft.app/jobs"
            | "microsoft.batch/batchaccounts"
            | "microsoft.machinelearningservices/workspaces/jobs" => {
                self.delete_later(&resource, OperationStyle::Location, 20)
            }
            "microsoft.machinelearningservices/workspaces/computes" => {
                self.delete_later(&resource, OperationStyle::MlCompute, 60)
            }
            kind if kind.starts_with("microsoft.machinelearningservices/workspaces/onlineendpoints") => {
                self.delete_later(&resource, OperationStyle::MlEndpoint, 60)
            }
            kind if kind.starts_with("microsoft.network/") => {
                self.delete_later(&resource, OperationStyle::Network, 5)
            }
            _ => self.delete_at_once(&resource),
        }
    }

    fn has_apps(&self, environment: &str) -> bool {
        self.resources.values().any(|resource| {
            ["microsoft.app/containerapps", "microsoft.app/jobs"].contains(&resource.target.kind.as_str())
                && ["environmentId", "managedEnvironmentId"].iter().any(|name| {
                    resource.property(name).as_str().is_some_and(|id| id.eq_ignore_ascii_case(environment))
                })
        })
    }

    fn delete_at_once(&mut self, resource: &Resource) -> Answer {
        self.record(&resource.target, "delete", "Started");
        let body = self.render(resource, false);
        self.remove(&resource.target.key);
        self.record(&resource.target, "delete", "Succeeded");
        match resource.target.kind.as_str() {
            "microsoft.containerinstance/containergroups" | "microsoft.authorization/roleassignments" => {
                Answer::json(200, body)
            }
            _ => Answer::empty(200),
        }
    }

    /// Accepts a deletion that ends later. Billing stops now.
    fn delete_later(&mut self, resource: &Resource, style: OperationStyle, seconds: Seconds) -> Answer {
        let (target, location) = (&resource.target, resource.location());
        let operation = self.begin(style, &target.key, &location);
        self.stop_charging(&target.key);
        self.batch.stop_account(&target.key);
        self.remove_nodes(&target.key);
        if !resource.is_deleting {
            self.record(target, "delete", "Started");
        }
        self.update(&target.key, |resource| {
            resource.is_deleting = true;
            resource.set_state("Deleting");
        });
        let done = operation.clone();
        let serial = resource.serial;
        let target = target.clone();
        self.after(seconds, move |cloud| {
            if cloud.find(&target.key).is_some_and(|resource| resource.serial == serial) {
                match target.kind.as_str() {
                    "microsoft.compute/virtualmachines" => cloud.remove_machine(&target.key),
                    _ => cloud.remove(&target.key),
                }
                cloud.record(&target, "delete", "Succeeded");
            }
            cloud.end(&done, Progress::Succeeded);
        });
        let (status, location) = (self.signed(&operation), self.signed(&operation));
        let answer = Answer::empty(202);
        match style {
            OperationStyle::Location => answer.with("Location", location),
            OperationStyle::MlCompute => answer.with("Azure-AsyncOperation", status),
            _ => answer.with("Azure-AsyncOperation", status).with("Location", location),
        }
    }

    /// A second deletion joins the first.
    fn delete_group(&mut self, target: &Target, query: &str) -> Answer {
        let has_machines = self
            .keys_of("microsoft.compute/virtualmachines")
            .iter()
            .any(|key| crate::resources::target::is_within(key, &target.key));
        let seconds = match (has_machines, query.to_ascii_lowercase().contains("forcedeletiontypes")) {
            (false, _) => 25,
            (true, false) => GROUP_SECONDS.0,
            (true, true) => GROUP_SECONDS.1,
        };
        let is_first = !self.resources[&target.key].is_deleting;
        let operation = self.begin(OperationStyle::Location, &target.key, "");
        if is_first {
            self.record(target, "delete", "Started");
            self.record(target, "delete", "Accepted");
            self.stop_charging(&target.key);
            self.batch.stop_account(&target.key);
            let ready_at = self.now + seconds;
            self.update(&target.key, |group| {
                group.is_deleting = true;
                group.set_state("Deleting");
                group.ready_at = ready_at;
            });
        }
        let seconds = self.resources[&target.key].ready_at.saturating_sub(self.now);
        let (serial, scope, done) = (self.resources[&target.key].serial, target.clone(), operation.clone());
        self.after(seconds, move |cloud| cloud.finish_group_deletion(&scope, serial, &done));
        let location = self.signed(&operation);
        Answer::empty(202).with("Location", location)
    }

    fn finish_group_deletion(&mut self, target: &Target, serial: u64, operation: &str) {
        if self.find(&target.key).is_some_and(|group| group.serial == serial && group.is_deleting) {
            if self.failed_group_deletions < self.settings.failing_group_deletions {
                self.failed_group_deletions += 1;
                self.update(&target.key, |group| {
                    group.is_deleting = false;
                    group.set_state("Succeeded");
                });
                self.record(target, "delete", "Failed");
                let message = "Deletion of the resource group failed as resources with identifiers could not be deleted.";
                let error = json!({"code": "ResourceGroupDeletionBlocked", "message": message});
                self.end(operation, Progress::Failed(error));
                return;
            }
            self.remove(&target.key);
            self.record(target, "delete", "Succeeded");
        }
        self.end(operation, Progress::Succeeded);
    }
}
