//! Common to all resource providers: creating resources, and reading them.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::resources::resource::Resource;
use crate::resources::target::{GROUP_KIND, Target};
use crate::state::identity::Caller;
use crate::state::operation::{OperationStyle, Progress};
use crate::time::Seconds;
use crate::wire::answer::Answer;

/// How a service creates resources of one type. The times are those of recordings, where there are any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Creation {
    /// None if it is done with the response.
    pub(crate) style: Option<OperationStyle>,
    /// The provisioning state meanwhile.
    pub(crate) state: &'static str,
    pub(crate) seconds: Seconds,
}

const AT_ONCE: Creation = Creation { style: None, state: "Succeeded", seconds: 0 };

/// None for types that do not exist here.
pub(crate) fn creation(kind: &str) -> Option<Creation> {
    let running = |style, state, seconds| Creation { style: Some(style), state, seconds };
    Some(match kind {
        "microsoft.compute/virtualmachines" => running(OperationStyle::Compute, "Creating", 33),
        "microsoft.compute/virtualmachines/extensions" => running(OperationStyle::Compute, "Creating", 120),
        "microsoft.compute/virtualmachines/runcommands" => running(OperationStyle::Compute, "Creating", 12),
        "microsoft.compute/disks" => running(OperationStyle::Compute, "Updating", 3),
        "microsoft.network/virtualnetworks"
        | "microsoft.network/virtualnetworks/subnets"
        | "microsoft.network/networksecuritygroups"
        | "microsoft.network/publicipaddresses"
        | "microsoft.network/natgateways"
        | "microsoft.network/networkinterfaces" => running(OperationStyle::Network, "Updating", 4),
        "microsoft.containerinstance/containergroups" => {
            running(OperationStyle::ContainerGroup, "Pending", 22)
        }
        "microsoft.app/managedenvironments" => running(OperationStyle::ContainerApps, "Waiting", 180),
        "microsoft.app/containerapps" => running(OperationStyle::ContainerApps, "InProgress", 15),
        "microsoft.app/jobs" => running(OperationStyle::ContainerApps, "InProgress", 9),
        "microsoft.batch/batchaccounts" => running(OperationStyle::Location, "Creating", 16),
        "microsoft.machinelearningservices/workspaces/computes" => {
            running(OperationStyle::MlCompute, "Creating", 29)
        }
        "microsoft.machinelearningservices/workspaces/onlineendpoints" => {
            running(OperationStyle::MlEndpoint, "Creating", 22)
        }
        "microsoft.machinelearningservices/workspaces/onlineendpoints/deployments" => {
            running(OperationStyle::MlEndpoint, "Creating", 305)
        }
        "microsoft.resources/deployments" => running(OperationStyle::Deployment, "Accepted", 0),
        GROUP_KIND
        | "microsoft.logic/workflows"
        | "microsoft.authorization/roleassignments"
        | "microsoft.authorization/locks"
        | "microsoft.managedidentity/userassignedidentities"
        | "microsoft.storage/storageaccounts"
        | "microsoft.storage/storageaccounts/blobservices/containers"
        | "microsoft.operationalinsights/workspaces"
        | "microsoft.devtestlab/schedules"
        | "microsoft.containerregistry/registries"
        | "microsoft.app/jobs/executions"
        | "microsoft.machinelearningservices/workspaces"
        | "microsoft.machinelearningservices/workspaces/jobs"
        | "microsoft.machinelearningservices/workspaces/environments"
        | "microsoft.machinelearningservices/workspaces/environments/versions" => AT_ONCE,
        _ => return None,
    })
}

impl Cloud {
    /// Creates or changes a resource.
    pub(crate) fn put(&mut self, target: &Target, body: &Value, caller: &Caller) -> Answer {
        if let Some(refusal) = self.refuse_put(target, body, caller) {
            return refusal;
        }
        if target.kind == "microsoft.resources/deployments" {
            return self.put_deployment(target, body);
        }
        let creation = creation(&target.kind).unwrap();
        let was_busy = self.find(&target.key).is_some_and(Resource::is_busy);
        let is_new = self.store(target, body);
        if is_new {
            self.record(target, "write", "Started");
            self.on_created(target);
        }
        let Some(style) = creation.style else {
            if !["microsoft.authorization", "microsoft.machinelearningservices"].contains(&target.namespace())
            {
                self.update(&target.key, |resource| resource.set_state("Succeeded"));
            }
            self.on_changed(&target.key);
            self.record(target, "write", "Succeeded");
            return Answer::json(if is_new { 201 } else { 200 }, self.render_key(&target.key));
        };
        // A change of what exists is fast, and a repeated request joins the first.
        let seconds = match (is_new, was_busy) {
            (true, _) => creation.seconds,
            (false, true) => self.resources[&target.key].ready_at.saturating_sub(self.now),
            (false, false) => creation.seconds.min(5),
        };
        let ready_at = self.now + seconds;
        self.update(&target.key, |resource| {
            resource.set_state(if is_new || was_busy { creation.state } else { "Updating" });
            resource.ready_at = ready_at;
        });
        let location = self.resources[&target.key].location();
        let operation = self.begin(style, &target.key, &location);
        let done = operation.clone();
        self.after_for(&target.key, seconds, move |cloud, key| cloud.finish(key, &done));
        self.accepted(target, &operation, style, is_new)
    }

    /// The response to a PUT whose operation continues.
    fn accepted(&mut self, target: &Target, operation: &str, style: OperationStyle, is_new: bool) -> Answer {
        let address = self.signed(operation);
        if style == OperationStyle::Location {
            return Answer::empty(202).with("Location", address);
        }
        let is_created = is_new || style == OperationStyle::MlCompute;
        let mut answer = Answer::json(if is_created { 201 } else { 200 }, self.render_key(&target.key))
            .with("Azure-AsyncOperation", address);
        if target.kind == "microsoft.compute/virtualmachines" {
            answer = answer.with("ETag", format!("\"{}\"", self.resources[&target.key].serial));
        }
        if style == OperationStyle::MlEndpoint {
            let location = format!("{}{}?api-version=2024-10-01", self.base, target.id);
            return answer.with("Location", location);
        }
        answer
    }

    /// Ends the creation or change of a resource.
    fn finish(&mut self, key: &str, operation: &str) {
        if self.resources[key].is_deleting {
            let gone = json!({"code": "OperationPreempted", "message": "The resource is being deleted."});
            self.end(operation, Progress::Failed(gone));
            return;
        }
        if !self.resources[key].is_busy() {
            self.end(operation, Progress::Succeeded);
            return;
        }
        let target = self.resources[key].target.clone();
        if let Some((code, message)) = self.settings.failing.get(&target.kind).cloned() {
            let error = json!({"code": code, "message": message});
            self.update(key, |resource| resource.set_state("Failed"));
            self.stop_charging(key);
            self.record(&target, "write", "Failed");
            self.end(operation, Progress::Failed(error));
            return;
        }
        self.update(key, |resource| resource.set_state("Succeeded"));
        self.on_changed(key);
        self.record(&target, "write", "Succeeded");
        self.end(operation, Progress::Succeeded);
    }

    fn refuse_put(&self, target: &Target, body: &Value, caller: &Caller) -> Option<Answer> {
        if creation(&target.kind).is_none() {
            let message = format!(
                "The resource type could not be found in the namespace '{}' for api version: {}",
                target.namespace(),
                target.type_name
            );
            return Some(Answer::error(404, "InvalidResourceType", message));
        }
        if let Some(denied) = self.deny(caller, &target.key, "write") {
            return Some(denied);
        }
        let namespace = target.namespace();
        if self.settings.unregistered.iter().any(|name| name.eq_ignore_ascii_case(namespace)) {
            let message = format!("The subscription is not registered to use namespace '{namespace}'.");
            return Some(Answer::error(409, "MissingSubscriptionRegistration", message));
        }
        if let Some(group) = target.group_key() {
            match self.find(&group) {
                None if target.kind != GROUP_KIND => {
                    return Some(Self::not_found(&Target::parse(&group).unwrap()));
                }
                Some(resource) if resource.is_deleting => {
                    let message = format!(
                        "The resource group '{}' is in deprovisioning state and cannot perform this operation.",
                        resource.target.name
                    );
                    return Some(Answer::error(409, "ResourceGroupBeingDeleted", message));
                }
                _ => {}
            }
        }
        if self.find(&target.key).is_some_and(|resource| resource.is_deleting) {
            let message = format!("The resource '{}' is being deleted.", target.id);
            return Some(Answer::error(409, "AnotherOperationInProgress", message));
        }
        let parent = target.parent_key();
        if parent.contains("/providers/") && self.find(&parent).is_none() && !has_implied_parent(&target.kind)
        {
            let message = format!(
                "Can not perform requested operation on nested resource. Parent resource '{parent}' not found."
            );
            return Some(Answer::error(404, "ParentResourceNotFound", message));
        }
        match target.kind.as_str() {
            "microsoft.compute/virtualmachines" => self.refuse_machine(target, body, false),
            "microsoft.containerinstance/containergroups" => self.refuse_container_group(target),
            "microsoft.authorization/roleassignments" => self.refuse_role_assignment(target, body, caller),
            "microsoft.logic/workflows" => crate::services::logic::refuse_workflow(body),
            "microsoft.app/jobs" | "microsoft.app/containerapps" => self.refuse_without_environment(body),
            kind if kind.starts_with("microsoft.machinelearningservices/workspaces/onlineendpoints") => {
                self.refuse_elsewhere(target, body)
            }
            _ => None,
        }
    }

    /// Creates everything that comes with a new resource.
    fn on_created(&mut self, target: &Target) {
        match target.namespace() {
            "microsoft.compute" => self.machine_created(target),
            "microsoft.containerinstance" => self.container_group_created(target),
            "microsoft.app" => self.container_app_created(target),
            "microsoft.batch" => self.batch_account_created(target),
            "microsoft.machinelearningservices" => self.ml_created(target),
            "microsoft.managedidentity" => {
                let (principal, client) = (self.random.uuid(), self.random.uuid());
                self.update(&target.key, |resource| {
                    resource.set("principalId", json!(principal));
                    resource.set("clientId", json!(client));
                });
            }
            "microsoft.authorization" => self.role_assignment_created(target),
            _ => {}
        }
    }

    /// Called when an operation on a resource has succeeded.
    fn on_changed(&mut self, key: &str) {
        let resource = &self.resources[key];
        match resource.target.kind.as_str() {
            "microsoft.compute/virtualmachines" => self.machine_ready(key),
            "microsoft.containerinstance/containergroups" => self.container_group_ready(key),
            "microsoft.app/managedenvironments" | "microsoft.app/containerapps" => {
                self.container_app_ready(key);
            }
            "microsoft.machinelearningservices/workspaces/onlineendpoints" => self.endpoint_ready(key),
            "microsoft.network/publicipaddresses" => {
                self.update(key, |address| address.set("ipAddress", json!("192.0.2.20")));
            }
            "microsoft.logic/workflows" => self.workflow_changed(key),
            _ => {}
        }
    }

    pub(crate) fn render_key(&self, key: &str) -> Value {
        self.render(&self.resources[key], false)
    }

    /// The body of a GET response.
    pub(crate) fn render(&self, resource: &Resource, expand: bool) -> Value {
        let mut body = match resource.target.kind.as_str() {
            "microsoft.compute/virtualmachines" => self.render_machine(resource, expand),
            "microsoft.compute/virtualmachines/runcommands" => self.render_command(resource, expand),
            "microsoft.containerinstance/containergroups" => self.render_container_group(resource),
            "microsoft.app/jobs/executions" => self.render_execution(resource),
            _ => resource.body.clone(),
        };
        // Secrets are never returned.
        for secret in list_mut(&mut body, "/properties/configuration/secrets") {
            remove(secret, "value");
        }
        body
    }

    /// The body in a list, which has fewer fields of container groups.
    fn render_in_list(&self, resource: &Resource) -> Value {
        let mut body = self.render(resource, false);
        if resource.target.kind == "microsoft.containerinstance/containergroups" {
            remove(&mut body["properties"], "instanceView");
            for container in list_mut(&mut body, "/properties/containers") {
                remove(&mut container["properties"], "instanceView");
            }
        }
        body
    }

    /// GET of one resource, or of all of a type in a scope.
    pub(crate) fn get(&self, target: &Target, query: &str) -> Answer {
        if let Some(group) = target.group_key().filter(|group| self.visible(group).is_none()) {
            return Self::not_found(&Target::parse(&group).unwrap());
        }
        if let Some(collection) = &target.tail {
            return self.list(target, collection);
        }
        match self.visible(&target.key) {
            Some(resource) => {
                let answer = Answer::json(200, self.render(resource, query.contains("instanceView")));
                match target.kind.as_str() {
                    "microsoft.batch/batchaccounts" => {
                        answer.with("ETag", format!("\"0x{:X}\"", resource.serial))
                    }
                    "microsoft.compute/virtualmachines" if !query.contains("instanceView") => {
                        answer.with("ETag", format!("\"{}\"", resource.serial))
                    }
                    _ => answer,
                }
            }
            // The status of an evicted machine in Compute.
            None if target.kind == "microsoft.compute/virtualmachines" && self.was_evicted(&target.key) => {
                Answer::error(404, "NotFound", "The entity was not found in this Azure location.")
            }
            None if target.kind == "microsoft.resources/deployments" => Self::deployment_not_found(target),
            None => Self::not_found(target),
        }
    }

    fn list(&self, target: &Target, collection: &str) -> Answer {
        let kind = match target.kind.as_str() {
            GROUP_KIND if collection == "resources" => None,
            "subscriptions" if collection == "resourcegroups" => Some(GROUP_KIND.to_owned()),
            kind => Some(format!("{kind}/{collection}")),
        };
        if kind.as_ref().is_some_and(|kind| creation(kind).is_none()) {
            return Answer::error(404, "InvalidResourceType", format!("no {collection} in {}", target.kind));
        }
        let scope = target.key.split("/providers/").next().unwrap_or_default();
        let scope = if target.name.is_empty() { scope } else { &target.key };
        let listed = self.resources.values().filter(|resource| {
            resource.is_within(scope)
                && resource.visible_from <= self.now
                && kind.as_ref().map_or_else(
                    || resource.target.kind != GROUP_KIND && resource.target.parent_key() == target.key,
                    |kind| resource.target.kind == *kind,
                )
        });
        Answer::list(listed.map(|resource| self.render_in_list(resource)).collect())
    }
}

/// The items of a list in a body, if there is one. Indexing a value would create what is missing.
pub(crate) fn list_mut<'v>(body: &'v mut Value, pointer: &str) -> impl Iterator<Item = &'v mut Value> {
    body.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Removes a field of an object.
pub(crate) fn remove(object: &mut Value, name: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(name);
    }
}

/// Whether the parent exists without being created.
fn has_implied_parent(kind: &str) -> bool {
    [
        "microsoft.machinelearningservices/workspaces/environments/versions",
        "microsoft.storage/storageaccounts/blobservices/containers",
    ]
    .contains(&kind)
}
