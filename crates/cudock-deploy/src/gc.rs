//! Finds and deletes what was left behind: unfinished entries of the journal, and resource groups that it has lost.

use std::collections::BTreeMap;
use std::time::Duration;

use cudock_azure::{
    Body, Call, DeploymentState, Phase, Plane, Step, Wait, group_name, is_run_id, reaper_group_name,
};
use cudock_base::Timestamp;
use cudock_http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::down::cancel_call;
use crate::error::DeployError;
use crate::journal::DeploymentRecord;
use crate::run::Deployer;

/// How long the deletion of a group may take.
const DELETE_TIMEOUT: Duration = Duration::from_secs(40 * 60);

/// Pages of the Resource Graph that are read at most.
const MOST_PAGES: usize = 100;

/// Who asks, and where.
#[derive(Debug, Clone, Copy)]
pub struct GcScope<'a> {
    pub subscription: &'a str,
    /// As in the tag `cudock-owner`.
    pub owner: &'a str,
    /// Lists what would be deleted.
    pub is_dry_run: bool,
}

/// The report of `cudock gc`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct GcReport {
    pub found: Vec<Leftover>,
    /// Whether nothing was deleted on purpose.
    pub dry_run: bool,
}

impl GcReport {
    pub fn has_failed(&self) -> bool {
        self.found.iter().any(|leftover| leftover.error.is_some())
    }
}

/// Something that was left behind.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Leftover {
    pub run_id: String,
    pub name: Option<String>,
    pub reason: String,
    /// Whether the journal knows it.
    pub in_journal: bool,
    pub deleted: bool,
    pub error: Option<String>,
}

/// Why an entry of the journal is a leftover; none if it is meant to exist. Nobody works on it.
fn leftover_reason(record: &DeploymentRecord, now: Timestamp) -> Option<&'static str> {
    match record.state {
        DeploymentState::Gone => None,
        _ if record.expires <= now => Some("its time to live is over"),
        DeploymentState::Starting => Some("its command died while it was created"),
        DeploymentState::Deleting => Some("its deletion was not finished"),
        DeploymentState::Succeeded | DeploymentState::Failed | DeploymentState::Evicted => {
            Some("it has ended")
        }
        DeploymentState::Running => record.is_attached.then_some("its command died"),
    }
}

impl Deployer<'_> {
    /// Deletes what was left behind. Errors of single deletions are in the report.
    pub fn gc(&self, scope: &GcScope<'_>) -> Result<GcReport, DeployError> {
        let mut found = Vec::new();
        for record in self.journal.existing()? {
            let Some(reason) = leftover_reason(&record, self.cloud.now()) else { continue };
            let Some(_lock) = self.journal.lock(&record.run_id)? else { continue };
            let deleted = if scope.is_dry_run { None } else { Some(self.delete(&record)) };
            found.push(Leftover::new(&record.run_id, Some(record.name), reason, true, deleted.as_ref()));
        }
        for (run_id, lost) in self.lost_runs(scope)? {
            // The journal has every run before its group exists, so what it does not have now is really lost.
            let is_known = self.journal.run(&run_id)?.is_some_and(|run| run.state != DeploymentState::Gone);
            if is_known || !self.has_group(scope.subscription, &run_id)? {
                continue;
            }
            let deleted =
                if scope.is_dry_run { None } else { Some(self.delete_lost(scope.subscription, &run_id)) };
            found.push(Leftover::new(&run_id, lost.name, lost.reason, false, deleted.as_ref()));
        }
        Ok(GcReport { found, dry_run: scope.is_dry_run })
    }

    /// The runs whose groups exist in the subscription and that may be deleted: the user's own, and expired ones.
    fn lost_runs(&self, scope: &GcScope<'_>) -> Result<BTreeMap<String, LostRun>, DeployError> {
        let mut runs = BTreeMap::new();
        let mut skip: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let call = graph_call(scope.subscription, skip.as_deref());
            let reply = self
                .cloud
                .send(&call)
                .map_err(|error| DeployError::cloud("cannot search for leftover resource groups", error))?;
            let groups =
                reply.body.get("data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            for group in groups {
                if let Some((run_id, run)) = lost_run(group, scope.owner, self.cloud.now()) {
                    runs.insert(run_id, run);
                }
            }
            skip = reply.body.get("$skipToken").and_then(Value::as_str).map(str::to_owned);
            if skip.is_none() {
                break;
            }
        }
        Ok(runs)
    }

    /// Whether a group of a run exists: the Resource Graph lags behind.
    fn has_group(&self, subscription: &str, run_id: &str) -> Result<bool, DeployError> {
        for name in [group_name(run_id), reaper_group_name(run_id)] {
            let call = Call { method: Method::GET, ..group_call(subscription, &name, "") };
            match self.cloud.send(&call) {
                Ok(_) => return Ok(true),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(DeployError::cloud(format!("cannot read the group {name}"), error)),
            }
        }
        Ok(false)
    }

    fn delete_lost(&self, subscription: &str, run_id: &str) -> Result<(), DeployError> {
        let template = template_call(subscription, run_id);
        if let Some(cancel) = cancel_call(&template) {
            self.cancel_template(&template, &cancel)?;
        }
        for step in lost_cleanup(subscription, run_id, template) {
            let deleted = self.send_deletion(&step);
            deleted.map_err(|error| {
                DeployError::cloud(format!("cannot delete `{}` of run {run_id}", step.id), error)
            })?;
        }
        Ok(())
    }
}

impl Leftover {
    fn new(
        run_id: &str,
        name: Option<String>,
        reason: impl Into<String>,
        in_journal: bool,
        deleted: Option<&Result<(), DeployError>>,
    ) -> Self {
        let error = match deleted {
            Some(Err(error)) => Some(cudock_base::text::error_chain(error)),
            _ => None,
        };
        let deleted = matches!(deleted, Some(Ok(())));
        Self { run_id: run_id.to_owned(), name, reason: reason.into(), in_journal, deleted, error }
    }
}

/// A run of which the journal knows nothing.
#[derive(Debug, PartialEq, Eq)]
struct LostRun {
    name: Option<String>,
    reason: &'static str,
}

/// Reads a row of the Resource Graph. A group without a run id that could be one of ours is never deleted.
fn lost_run(group: &Value, owner: &str, now: Timestamp) -> Option<(String, LostRun)> {
    let tags = group.get("tags")?.as_object()?;
    // Names of tags are case-insensitive.
    let tag = |wanted: &str| {
        let found = tags.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.and_then(|(_, value)| value.as_str())
    };
    let run_id = tag("cudock-run").filter(|id| is_run_id(id))?;
    let group_of_run = group_name(run_id);
    let name = group.get("name").and_then(Value::as_str)?;
    if !name.eq_ignore_ascii_case(&group_of_run) && !name.eq_ignore_ascii_case(&reaper_group_name(run_id)) {
        return None;
    }
    let is_expired = tag("cudock-delete-after").and_then(Timestamp::parse).is_some_and(|end| end <= now);
    let reason = match tag("cudock-owner") {
        _ if is_expired => "the journal does not know it, and its time to live is over",
        Some(tagged) if tagged == owner => "the journal does not know it",
        _ => return None,
    };
    Some((run_id.to_owned(), LostRun { name: tag("cudock-name").map(str::to_owned), reason }))
}

fn graph_call(subscription: &str, skip: Option<&str>) -> Call {
    let query = "resourcecontainers | where type =~ 'microsoft.resources/subscriptions/resourcegroups' \
                 | where isnotempty(tags['cudock-run']) | project id, name, tags | order by id asc";
    let mut body =
        json!({"subscriptions": [subscription], "query": query, "options": {"resultFormat": "objectArray"}});
    if let (Some(skip), Some(options)) = (skip, body.get_mut("options").and_then(Value::as_object_mut)) {
        options.insert("$skipToken".to_owned(), skip.into());
    }
    Call {
        method: Method::POST,
        plane: Plane::ResourceManager,
        path: "/providers/Microsoft.ResourceGraph/resources?api-version=2022-10-01".to_owned(),
        body: Some(Body::new(body)),
    }
}

/// The request that created a run, without its body.
fn template_call(subscription: &str, run_id: &str) -> Call {
    Call {
        method: Method::PUT,
        plane: Plane::ResourceManager,
        path: format!(
            "/subscriptions/{subscription}/providers/Microsoft.Resources/deployments/{}?api-version=2021-04-01",
            group_name(run_id)
        ),
        body: None,
    }
}

/// The steps that delete a run by its id alone, as every translation ends with them.
fn lost_cleanup(subscription: &str, run_id: &str, template: Call) -> [Step; 3] {
    let group = |id: &str, name: &str, query: &str| {
        let resource = format!("/subscriptions/{subscription}/resourceGroups/{name}");
        delete_step(id, group_call(subscription, name, query), Some(resource), Wait::Gone)
    };
    let force = "&forceDeletionTypes=Microsoft.Compute%2FvirtualMachines";
    let record = Call { method: Method::DELETE, ..template };
    [
        group("group", &group_name(run_id), force),
        group("reaper", &reaper_group_name(run_id), ""),
        delete_step("deployment", record, None, Wait::Operation),
    ]
}

fn group_call(subscription: &str, name: &str, query: &str) -> Call {
    Call {
        method: Method::DELETE,
        plane: Plane::ResourceManager,
        path: format!("/subscriptions/{subscription}/resourcegroups/{name}?api-version=2021-04-01{query}"),
        body: None,
    }
}

fn delete_step(id: &str, call: Call, resource: Option<String>, wait: Wait) -> Step {
    Step {
        id: id.to_owned(),
        phase: Phase::Delete,
        call,
        resource,
        is_billed: false,
        wait,
        timeout: DELETE_TIMEOUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_and_expired_groups_are_leftovers() {
        let now = Timestamp::parse("2026-11-17T12:00:00Z").unwrap();
        let group = |name: &str, tags: Value| json!({"id": "x", "name": name, "tags": tags});
        let (id, name) = ("0123456789ab", "cudock-0123456789ab");
        let cases = [
            ("own", name, json!({"cudock-run": id, "cudock-owner": "me"}), true),
            (
                "own, the reaper's",
                "CUDOCK-0123456789ab-reaper",
                json!({"Cudock-Run": id, "cudock-owner": "me"}),
                true,
            ),
            ("of somebody else", name, json!({"cudock-run": id, "cudock-owner": "you"}), false),
            ("without an owner", name, json!({"cudock-run": id}), false),
            (
                "expired",
                name,
                json!({"cudock-run": id, "cudock-owner": "you", "cudock-delete-after": "2026-11-17T11:59:59Z"}),
                true,
            ),
            (
                "not yet expired",
                name,
                json!({"cudock-run": id, "cudock-owner": "you", "cudock-delete-after": "2026-11-17T12:00:01Z"}),
                false,
            ),
            (
                "another group with the tag",
                "production",
                json!({"cudock-run": id, "cudock-owner": "me"}),
                false,
            ),
            ("no run id", "cudock-x", json!({"cudock-run": "x", "cudock-owner": "me"}), false),
            ("no tags", name, Value::Null, false),
        ];
        for (case, name, tags, expected) in cases {
            assert_eq!(lost_run(&group(name, tags), "me", now).is_some(), expected, "{case}");
        }
    }
}
