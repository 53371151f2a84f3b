//! Deployments of templates: Azure carries them out, whether or not anyone waits.

use serde_json::{Map, Value, json};

use crate::cloud::Cloud;
use crate::resources::provider::remove;
use crate::resources::resource::Resource;
use crate::resources::target::Target;
use crate::state::identity::Caller;
use crate::state::operation::{OperationStyle, Progress};
use crate::state::template_run::{Scope, TemplateRun};
use crate::templates::template::{EvaluationError, target_of};
use crate::time::{Seconds, utc};
use crate::wire::answer::Answer;

const KIND: &str = "microsoft.resources/deployments";
/// Time from the acceptance of a template to the first resource.
const START_SECONDS: Seconds = 2;

impl Cloud {
    pub(crate) fn put_deployment(&mut self, target: &Target, body: &Value) -> Answer {
        if let Some(active) = self.find(&target.key).filter(|deployment| deployment.is_busy()) {
            let message = format!(
                "Unable to edit or replace deployment '{}': previous deployment from '{}' is still active.",
                target.name,
                utc(active.created)
            );
            return Answer::error(409, "DeploymentActive", message);
        }
        let properties = &body["properties"];
        if !properties["mode"].as_str().is_some_and(|mode| mode.eq_ignore_ascii_case("Incremental")) {
            return Answer::error(400, "InvalidDeployment", "the mode must be Incremental");
        }
        if target.group.is_none() && body["location"].as_str().is_none() {
            return Answer::error(400, "LocationRequired", "The 'location' property must be specified.");
        }
        let scope = match self.scope_of(target, properties) {
            Ok(scope) => scope,
            Err(message) => return Answer::error(400, "InvalidTemplate", message),
        };
        if let Some(refusal) = self.refuse_template(target, &properties["template"], &scope) {
            return refusal;
        }
        // The record of an earlier deployment of this name is replaced.
        self.resources.remove(&target.key);
        let (correlation, timestamp) = (self.random.uuid(), utc(self.now));
        let mut record = body.clone();
        record["properties"] = json!({
            "templateHash": "1", "mode": "Incremental", "provisioningState": "Accepted", "timestamp": timestamp,
            "duration": "PT0S", "correlationId": correlation, "providers": [], "dependencies": [],
        });
        self.store(target, &record);
        self.record(target, "write", "Started");
        let pending = properties["template"]["resources"].as_array().cloned().unwrap_or_default();
        let outputs = properties["template"]["outputs"].clone();
        let location = body["location"].as_str().unwrap_or_default().to_owned();
        let operation = self.begin(OperationStyle::Deployment, &target.key, &location);
        self.runs.operations.insert(target.key.clone(), operation.clone());
        self.after_for(&target.key, START_SECONDS, move |cloud, key| {
            if cloud.resources[key].state() != "Accepted" {
                return;
            }
            cloud.update(key, |deployment| deployment.set_state("Running"));
            cloud
                .runs
                .active
                .insert(key.to_owned(), TemplateRun { scope, pending, outputs, begun: Vec::new() });
        });
        let address = self.signed(&operation);
        Answer::json(201, self.render_key(&target.key)).with("Azure-AsyncOperation", address)
    }

    /// Parameters and variables of a template.
    fn scope_of(&self, target: &Target, properties: &Value) -> Result<Scope, String> {
        let template = &properties["template"];
        let mut scope = Scope {
            group: target.group.clone(),
            parameters: Map::new(),
            variables: template["variables"].as_object().cloned().unwrap_or_default(),
        };
        for (name, declared) in template["parameters"].as_object().unwrap_or(&Map::new()) {
            let given = properties["parameters"][name].get("value").cloned();
            let default = || declared.get("defaultValue").map(|value| scope.evaluate(value, self));
            let value = match given {
                Some(value) => value,
                None => match default() {
                    Some(Ok(value)) => value,
                    Some(Err(error)) => return Err(format!("parameter {name}: {error:?}")),
                    None => {
                        return Err(format!(
                            "The value for the template parameter '{name}' is not provided."
                        ));
                    }
                },
            };
            scope.parameters.insert(name.clone(), value);
        }
        Ok(scope)
    }

    /// The checks of Azure before anything exists: types, functions, and quota of machines.
    fn refuse_template(&self, target: &Target, template: &Value, scope: &Scope) -> Option<Answer> {
        let invalid = |message: String| Some(Answer::error(400, "InvalidTemplate", message));
        let resources = template["resources"].as_array().cloned().unwrap_or_default();
        if resources.is_empty() {
            return invalid("the template has no resources".to_owned());
        }
        for resource in &resources {
            if resource.get("copy").is_some() {
                return invalid("copy loops are not supported".to_owned());
            }
            // Nested templates have their own scope, and are checked when they begin.
            let is_nested = resource["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case(KIND));
            let mut checked = resource.clone();
            if is_nested {
                checked["properties"]["template"] = Value::Null;
            }
            let evaluated = match scope.evaluate(&checked, self) {
                Ok(evaluated) => evaluated,
                Err(EvaluationError::NotYet(_)) => continue,
                Err(EvaluationError::Invalid(message)) => return invalid(message),
            };
            let Some(own) = target_of(&evaluated, scope) else {
                return invalid(format!("a resource has no type or name: {evaluated}"));
            };
            if crate::resources::provider::creation(&own.kind).is_none() {
                return invalid(format!("the resource type {} is not supported", own.type_name));
            }
            if own.kind == "microsoft.compute/virtualmachines"
                && let Some(refusal) = self.refuse_machine(&own, &evaluated, true)
            {
                let message = format!(
                    "The template deployment '{}' is not valid according to the validation procedure. See inner \
                     errors for details.",
                    target.name
                );
                let error = json!({"code": "InvalidTemplateDeployment", "message": message, "details": [refusal.reason()]});
                return Some(Answer::json(400, json!({"error": error})));
            }
        }
        None
    }

    /// Begins what has become ready, and ends what is done.
    pub(crate) fn step_deployments(&mut self) {
        loop {
            let keys: Vec<String> = self.runs.active.keys().cloned().collect();
            if !keys.iter().any(|key| self.step_deployment(key)) {
                return;
            }
        }
    }

    fn step_deployment(&mut self, key: &str) -> bool {
        let Some(run) = self.runs.active.get(key).cloned() else { return false };
        if self.find(key).is_none_or(|deployment| deployment.state() != "Running") {
            self.runs.active.remove(key);
            return true;
        }
        let failed = run.begun.iter().find_map(|begun| match self.find(begun) {
            Some(resource) if resource.state() == "Failed" || resource.state() == "Canceled" => {
                Some(format!("{begun} is {}", resource.state()))
            }
            // It was deleted while it was created.
            None => Some(format!("{begun} is gone")),
            _ => None,
        });
        if let Some(reason) = failed {
            self.fail_deployment(key, &json!({"code": "ResourceDeploymentFailure", "message": reason}));
            return true;
        }
        for (index, entry) in run.pending.iter().enumerate() {
            let evaluated = match evaluate_entry(entry, &run.scope, self) {
                Ok(evaluated) => evaluated,
                Err(EvaluationError::NotYet(_)) => continue,
                Err(EvaluationError::Invalid(message)) => {
                    self.fail_deployment(key, &json!({"code": "InvalidTemplate", "message": message}));
                    return true;
                }
            };
            if !self.is_ready(&evaluated, &run) {
                continue;
            }
            let target = target_of(&evaluated, &run.scope).unwrap();
            let is_wanted = evaluated.get("condition").is_none_or(|condition| condition == &json!(true));
            if is_wanted {
                let answer = self.put(&target, &evaluated, &Caller::User);
                if !answer.is_success() {
                    let error = json!({
                        "code": "DeploymentFailed", "message": "At least one resource deployment operation failed.",
                        "details": [answer.reason()],
                    });
                    self.fail_deployment(key, &error);
                    return true;
                }
            }
            let run = self.runs.active.get_mut(key).unwrap();
            run.pending.remove(index);
            if is_wanted {
                run.begun.push(target.key);
            }
            return true;
        }
        let is_waiting = run.begun.iter().any(|begun| self.find(begun).is_some_and(Resource::is_busy));
        if is_waiting {
            return false;
        }
        if !run.pending.is_empty() {
            let message = "a resource depends on, or refers to, one that the template does not create";
            self.fail_deployment(key, &json!({"code": "InvalidTemplate", "message": message}));
            return true;
        }
        self.succeed_deployment(key, &run);
        true
    }

    /// Whether everything that an entry depends on is done.
    fn is_ready(&self, entry: &Value, run: &TemplateRun) -> bool {
        let needs = entry["dependsOn"].as_array().cloned().unwrap_or_default();
        needs.iter().filter_map(Value::as_str).all(|need| {
            let need = need.to_ascii_lowercase();
            let is_meant = |key: &str| key == need || key.ends_with(&format!("/{need}"));
            let is_pending = run.pending.iter().any(|other| {
                let names: Map<String, Value> = ["type", "name", "resourceGroup", "scope"]
                    .into_iter()
                    .map(|field| (field.to_owned(), other[field].clone()))
                    .collect();
                let evaluated = run.scope.evaluate(&Value::Object(names), self);
                let target = evaluated.ok().and_then(|other| target_of(&other, &run.scope));
                target.is_some_and(|target| is_meant(&target.key))
            });
            let is_busy = run
                .begun
                .iter()
                .any(|begun| is_meant(begun) && self.find(begun).is_some_and(Resource::is_busy));
            !is_pending && !is_busy
        })
    }

    fn succeed_deployment(&mut self, key: &str, run: &TemplateRun) {
        let mut outputs = Map::new();
        for (name, output) in run.outputs.as_object().unwrap_or(&Map::new()) {
            match run.scope.evaluate(&output["value"], self) {
                Ok(value) => {
                    outputs.insert(name.clone(), json!({"type": output["type"], "value": value}));
                }
                Err(error) => {
                    self.fail_deployment(
                        key,
                        &json!({"code": "InvalidTemplate", "message": format!("{error:?}")}),
                    );
                    return;
                }
            }
        }
        self.runs.active.remove(key);
        let created = run.begun.iter().filter_map(|key| self.find(key));
        let ids: Vec<Value> = created.map(|resource| json!({"id": resource.target.id})).collect();
        self.update(key, |deployment| {
            deployment.set("outputs", json!(outputs));
            deployment.set("outputResources", json!(ids));
        });
        self.end_deployment(key, "Succeeded", &Progress::Succeeded);
    }

    fn fail_deployment(&mut self, key: &str, error: &Value) {
        self.runs.active.remove(key);
        self.update(key, |deployment| deployment.set("error", error.clone()));
        self.end_deployment(key, "Failed", &Progress::Failed(error.clone()));
    }

    fn end_deployment(&mut self, key: &str, state: &'static str, progress: &Progress) {
        let timestamp = utc(self.now);
        self.update(key, |deployment| {
            deployment.set_state(state);
            deployment.set("timestamp", json!(timestamp));
            remove(&mut deployment.body["properties"], "duration");
        });
        let target = self.resources[key].target.clone();
        self.record(&target, "write", state);
        if let Some(operation) = self.runs.operations.remove(key) {
            self.end(&operation, progress.clone());
        }
    }

    /// `cancel` and `operations`. Operations that have begun continue; others do not begin.
    pub(crate) fn deployment_action(
        &mut self,
        target: &Target,
        method: &str,
        action: &str,
        body: &Value,
    ) -> Answer {
        if (method, action) == ("POST", "validate") {
            let properties = &body["properties"];
            return match self.scope_of(target, properties) {
                Ok(scope) => {
                    self.refuse_template(target, &properties["template"], &scope).unwrap_or_else(|| {
                        Answer::json(200, json!({"properties": {"provisioningState": "Succeeded"}}))
                    })
                }
                Err(message) => Answer::error(400, "InvalidTemplate", message),
            };
        }
        let Some(deployment) = self.find(&target.key) else { return Self::deployment_not_found(target) };
        match (method, action) {
            ("POST", "cancel") if !deployment.is_busy() => {
                let message = format!(
                    "The deployment '{}' cannot be canceled: it is {}.",
                    target.name,
                    deployment.state()
                );
                Answer::error(409, "DeploymentCannotBeCancelled", message)
            }
            ("POST", "cancel") => {
                let nested =
                    self.runs.active.get(&target.key).map(|run| run.begun.clone()).unwrap_or_default();
                self.runs.active.remove(&target.key);
                self.end_deployment(&target.key, "Canceled", &Progress::Canceled);
                for key in nested {
                    let nested =
                        self.find(&key).filter(|resource| resource.target.kind == KIND && resource.is_busy());
                    if let Some(nested) = nested.map(|resource| resource.target.clone()) {
                        self.deployment_action(&nested, "POST", "cancel", &Value::Null);
                    }
                }
                Answer::empty(204)
            }
            ("GET", "operations") => {
                let begun =
                    self.runs.active.get(&target.key).map(|run| run.begun.clone()).unwrap_or_default();
                let operations = begun.iter().filter_map(|key| self.find(key)).map(|resource| {
                    json!({"properties": {
                        "provisioningState": resource.state(), "targetResource": {"id": resource.target.id},
                        "statusMessage": {"error": resource.property("error")},
                    }})
                });
                Answer::list(operations.collect())
            }
            _ => Answer::error(404, "InvalidAction", format!("no {action} of a deployment")),
        }
    }

    pub(crate) fn deployment_not_found(target: &Target) -> Answer {
        Answer::error(404, "DeploymentNotFound", format!("Deployment '{}' could not be found.", target.name))
    }

    /// Deletes the record. The resources stay; a deployment that is running cannot be deleted.
    pub(crate) fn delete_deployment(&mut self, deployment: &Resource) -> Answer {
        if deployment.is_busy() {
            let message = format!(
                "The deployment '{}' is still running and cannot be deleted.",
                deployment.target.name
            );
            return Answer::error(409, "DeploymentActive", message);
        }
        let key = deployment.target.key.clone();
        let operation = self.begin(OperationStyle::Location, &key, "");
        let done = operation.clone();
        let serial = deployment.serial;
        self.after(5, move |cloud| {
            if cloud.find(&key).is_some_and(|record| record.serial == serial) {
                cloud.remove(&key);
            }
            cloud.end(&done, Progress::Succeeded);
        });
        let location = self.signed(&operation);
        Answer::empty(202).with("Location", location)
    }
}

/// Evaluates an entry of a template, except for a nested template with its own scope.
fn evaluate_entry(entry: &Value, scope: &Scope, cloud: &Cloud) -> Result<Value, EvaluationError> {
    let is_nested = entry["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case(KIND));
    if !is_nested {
        return scope.evaluate(entry, cloud);
    }
    if entry["properties"]["expressionEvaluationOptions"]["scope"] != "inner" {
        let message = "nested templates must have expressionEvaluationOptions.scope inner";
        return Err(EvaluationError::Invalid(message.to_owned()));
    }
    let template = entry["properties"]["template"].clone();
    let mut outer = entry.clone();
    outer["properties"]["template"] = Value::Null;
    let mut evaluated = scope.evaluate(&outer, cloud)?;
    evaluated["properties"]["template"] = template;
    Ok(evaluated)
}
