//! The state of the cloud, its clock and its bill.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::random::Random;
use crate::resources::resource::Resource;
use crate::resources::target::{Target, is_within};
use crate::settings::CloudSettings;
use crate::state::batch::BatchData;
use crate::state::cluster_node::ClusterNode;
use crate::state::identity::Token;
use crate::state::log_entry::LogEntry;
use crate::state::operation::Operation;
use crate::state::storage::Storage;
use crate::state::template_run::TemplateRuns;
use crate::state::terminal::TerminalRequest;
use crate::time::Seconds;
use crate::wire::answer::Answer;

type Timer = Box<dyn FnOnce(&mut Cloud) + Send>;

/// A time during which something is billed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Charge {
    /// The key of the billed resource.
    pub(crate) key: String,
    pub(crate) from: Seconds,
    pub(crate) until: Option<Seconds>,
}

pub(crate) struct Cloud {
    pub(crate) settings: CloudSettings,
    /// The URL that clients use, without a path.
    pub(crate) base: String,
    pub(crate) now: Seconds,
    serial: u64,
    /// Timers by time, and in the order in which they were set.
    timers: BTreeMap<(Seconds, u64), Timer>,
    /// Resources by id in lower case.
    pub(crate) resources: BTreeMap<String, Resource>,
    /// Deleted resources that Resource Graph still lists, and until when.
    pub(crate) ghosts: Vec<(Resource, Seconds)>,
    /// Operations by path in lower case.
    pub(crate) operations: BTreeMap<String, Operation>,
    pub(crate) log: Vec<LogEntry>,
    pub(crate) charges: Vec<Charge>,
    pub(crate) tokens: BTreeMap<String, Token>,
    pub(crate) client_secret: String,
    pub(crate) batch: BatchData,
    /// The nodes of clusters of Machine Learning.
    pub(crate) cluster_nodes: Vec<ClusterNode>,
    pub(crate) runs: TemplateRuns,
    pub(crate) random: Random,
    /// The runs of workflows, by key.
    pub(crate) workflow_runs: BTreeMap<String, Vec<Value>>,
    pub(crate) failed_group_deletions: u32,
    pub(crate) storage: Storage,
    /// Programs that may be started, by session.
    pub(crate) terminals: BTreeMap<String, TerminalRequest>,
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloud")
            .field("now", &self.now)
            .field("resources", &self.resources.keys())
            .finish_non_exhaustive()
    }
}

impl Cloud {
    pub(crate) fn new(settings: CloudSettings, now: Seconds, client_secret: String) -> Self {
        Self {
            random: Random::new(settings.seed),
            settings,
            base: String::new(),
            now,
            serial: 0,
            timers: BTreeMap::new(),
            resources: BTreeMap::new(),
            ghosts: Vec::new(),
            operations: BTreeMap::new(),
            log: Vec::new(),
            charges: Vec::new(),
            tokens: BTreeMap::new(),
            client_secret,
            batch: BatchData::default(),
            cluster_nodes: Vec::new(),
            runs: TemplateRuns::default(),
            workflow_runs: BTreeMap::new(),
            failed_group_deletions: 0,
            storage: Storage::default(),
            terminals: BTreeMap::new(),
        }
    }

    /// A number that was not used before.
    pub(crate) fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Calls a function when this many seconds have passed.
    pub(crate) fn after(&mut self, seconds: Seconds, action: impl FnOnce(&mut Cloud) + Send + 'static) {
        let at = (self.now + seconds, self.serial());
        self.timers.insert(at, Box::new(action));
    }

    /// Calls a function with a resource's key later, if it still exists then and is not another one.
    pub(crate) fn after_for(
        &mut self,
        key: &str,
        seconds: Seconds,
        action: impl FnOnce(&mut Cloud, &str) + Send + 'static,
    ) {
        let (key, serial) = (key.to_owned(), self.resources[key].serial);
        self.after(seconds, move |cloud| {
            if cloud.resources.get(&key).is_some_and(|resource| resource.serial == serial) {
                action(cloud, &key);
            }
        });
    }

    /// Lets time pass. Timers on the way fire at their own second.
    pub(crate) fn advance(&mut self, seconds: Seconds) {
        let end = self.now + seconds;
        self.settle();
        while let Some(entry) = self.timers.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), action) = entry.remove_entry();
            self.now = self.now.max(at);
            action(self);
            self.settle();
        }
        self.now = end;
    }

    /// Does what follows from the current state without further delay.
    pub(crate) fn settle(&mut self) {
        self.step_deployments();
        self.step_batch();
    }

    /// Marks the work of a resource as done after some time. It ends when the client next reads the resource, and not in
    /// between: a client cannot know of an end between its last look and a deletion, so bills could not be compared.
    pub(crate) fn work_for(&mut self, key: &str, seconds: Seconds) {
        self.after_for(key, seconds, |cloud, key| cloud.update(key, |resource| resource.is_due = true));
    }

    /// Ends the work that is done, of a resource that is read and of those in it.
    pub(crate) fn end_due_work(&mut self, scope: &str) {
        let due = self.resources.values().filter(|resource| resource.is_due && resource.is_within(scope));
        let keys: Vec<String> = due.map(|resource| resource.target.key.clone()).collect();
        let has_succeeded = self.settings.job_exit_code == 0;
        for key in keys {
            self.update(&key, |resource| resource.is_due = false);
            match self.resources[&key].target.kind.as_str() {
                "microsoft.app/jobs/executions" => {
                    self.end_execution(&key, if has_succeeded { "Succeeded" } else { "Failed" });
                }
                "microsoft.machinelearningservices/workspaces/jobs" => {
                    self.end_ml_job(&key, if has_succeeded { "Completed" } else { "Failed" });
                }
                _ => self.end_containers(&key),
            }
        }
    }

    pub(crate) fn find(&self, key: &str) -> Option<&Resource> {
        self.resources.get(key)
    }

    /// The resource, unless it is not visible yet.
    pub(crate) fn visible(&self, key: &str) -> Option<&Resource> {
        self.resources.get(key).filter(|resource| resource.visible_from <= self.now)
    }

    /// Creates a resource with this body, or changes one, and returns whether it is new. Adds the
    /// fields that the service adds to every body; those that it added before stay.
    pub(crate) fn store(&mut self, target: &Target, body: &Value) -> bool {
        let old = self.resources.get(&target.key).cloned();
        let mut stored = match &old {
            Some(old) => old.body.clone(),
            None => json!({"id": target.id, "name": target.name, "type": target.type_name, "properties": {}}),
        };
        for (name, value) in body.as_object().unwrap_or(&Map::new()) {
            match (name.as_str(), value.as_object()) {
                // A resource in a template has these, the resource itself does not.
                ("apiVersion" | "dependsOn" | "condition" | "comments" | "scope" | "name" | "type", _) => {}
                ("properties", Some(properties)) => {
                    for (name, value) in properties {
                        stored["properties"][name] = value.clone();
                    }
                }
                _ => stored[name] = value.clone(),
            }
        }
        remove_nulls(&mut stored);
        self.add_identity(&mut stored, target);
        let resource = match old {
            Some(old) => Resource { body: stored, ..old },
            None => Resource {
                target: target.clone(),
                serial: self.serial(),
                body: stored,
                created: self.now,
                visible_from: self.now + self.random.below(self.settings.consistency_lag + 1),
                ready_at: self.now,
                started: None,
                ended: None,
                is_due: false,
                is_deleting: false,
                is_seeded: false,
            },
        };
        self.resources.insert(target.key.clone(), resource).is_none()
    }

    fn add_identity(&mut self, body: &mut Value, target: &Target) {
        if body["identity"]["type"].as_str().is_none_or(|kind| !kind.contains("SystemAssigned")) {
            return;
        }
        let known = self.find(&target.key).and_then(Resource::principal).map(str::to_owned);
        body["identity"]["principalId"] = json!(known.unwrap_or_else(|| self.random.uuid()));
        body["identity"]["tenantId"] = json!(crate::state::identity::TENANT);
    }

    /// Changes a resource that exists.
    pub(crate) fn update(&mut self, key: &str, change: impl FnOnce(&mut Resource)) {
        change(self.resources.get_mut(key).unwrap());
    }

    /// Removes a resource and everything in it at once. Resource Graph notices later.
    pub(crate) fn remove(&mut self, scope: &str) {
        let keys: Vec<String> = self.resources.keys().filter(|key| is_within(key, scope)).cloned().collect();
        for key in keys {
            self.stop_charging(&key);
            let resource = self.resources.remove(&key).unwrap();
            self.ghosts.push((resource, self.now + self.settings.graph_lag));
        }
        self.batch.remove_account(scope);
    }

    /// Keys of all resources of a kind.
    pub(crate) fn keys_of(&self, kind: &str) -> Vec<String> {
        let of_kind = self.resources.values().filter(|resource| resource.target.kind == kind);
        of_kind.map(|resource| resource.target.key.clone()).collect()
    }

    /// Begins to bill something, unless it is billed already.
    pub(crate) fn charge(&mut self, key: &str) {
        if !self.charges.iter().any(|charge| charge.key == key && charge.until.is_none()) {
            self.charges.push(Charge { key: key.to_owned(), from: self.now, until: None });
        }
    }

    /// Ends the bill of everything in a scope.
    pub(crate) fn stop_charging(&mut self, scope: &str) {
        let now = self.now;
        for charge in self.charges.iter_mut().filter(|charge| is_within(&charge.key, scope)) {
            charge.until.get_or_insert(now);
        }
    }

    /// The seconds for which anything in a scope was billed; overlapping times count each.
    pub(crate) fn billed_seconds(&self, scope: &str) -> Seconds {
        let within = self.charges.iter().filter(|charge| is_within(&charge.key, scope));
        within.map(|charge| charge.until.unwrap_or(self.now) - charge.from).sum()
    }

    /// 404 as Resource Manager words it.
    pub(crate) fn not_found(target: &Target) -> Answer {
        let short = target
            .key
            .rsplit_once("/providers/")
            .map_or(target.id.as_str(), |(scope, _)| &target.id[scope.len() + "/providers/".len()..]);
        match &target.group {
            Some(group) if target.kind == crate::resources::target::GROUP_KIND => Answer::error(
                404,
                "ResourceGroupNotFound",
                format!("Resource group '{group}' could not be found."),
            ),
            group => Answer::error(
                404,
                "ResourceNotFound",
                format!(
                    "The Resource '{short}' under resource group '{}' was not found. For more details please go to \
                     https://aka.ms/ARMResourceNotFoundFix",
                    group.as_deref().unwrap_or("<null>")
                ),
            ),
        }
    }
}

/// A field that is null is as good as absent, and services do not return it.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}
