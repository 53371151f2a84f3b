//! Finds and deletes what was left behind: unfinished entries of the journal, and resource groups that it has lost.

use std::collections::BTreeMap;

use cudock_azure::{
    Body, Call, DeploymentState, Plane, cleanup_of_run, group_name, is_run_id, reaper_call, reaper_group_name,
};
use cudock_base::Timestamp;
use cudock_http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::down::cancel_call;
use crate::error::DeployError;
use crate::journal::DeploymentRecord;
use crate::observe::answer;
use crate::run::Deployer;

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
        let groups = self
            .cloud
            .list(&graph_call(scope.subscription))
            .map_err(|error| DeployError::cloud("cannot search for leftover resource groups", error))?;
        let now = self.cloud.now();
        Ok(groups.iter().filter_map(|group| lost_run(group, scope.owner, now)).collect())
    }

    /// Whether a group of a run exists: the Resource Graph lags behind.
    fn has_group(&self, subscription: &str, run_id: &str) -> Result<bool, DeployError> {
        for name in [group_name(run_id), reaper_group_name(run_id)] {
            match self.cloud.send(&group_call(subscription, &name)) {
                Ok(_) => return Ok(true),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(DeployError::cloud(format!("cannot read the group {name}"), error)),
            }
        }
        Ok(false)
    }

    fn delete_lost(&self, subscription: &str, run_id: &str) -> Result<(), DeployError> {
        let cannot = |what: &str, error| DeployError::cloud(format!("cannot {what} of run {run_id}"), error);
        let reaper = answer(self.deleter, &reaper_call(subscription, run_id), &mut None)
            .map_err(|error| cannot("read the reaper", error))?;
        let steps = cleanup_of_run(subscription, run_id, reaper.as_ref());
        for step in steps.iter().filter(|step| step.id == "record") {
            let template = Call { method: Method::PUT, ..step.call.clone() };
            if let Some(cancel) = cancel_call(&template) {
                self.cancel_template(&template, &cancel)?;
            }
        }
        for step in steps {
            self.send_deletion(&step).map_err(|error| cannot(&format!("delete `{}`", step.id), error))?;
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

fn graph_call(subscription: &str) -> Call {
    let query = "resourcecontainers | where type =~ 'microsoft.resources/subscriptions/resourcegroups' \
                 | where isnotempty(tags['cudock-run']) | project id, name, tags | order by id asc";
    let body =
        json!({"subscriptions": [subscription], "query": query, "options": {"resultFormat": "objectArray"}});
    Call {
        method: Method::POST,
        plane: Plane::ResourceManager,
        path: "/providers/Microsoft.ResourceGraph/resources?api-version=2022-10-01".to_owned(),
        body: Some(Body::new(body)),
    }
}

/// The request for a group.
fn group_call(subscription: &str, name: &str) -> Call {
    Call {
        method: Method::GET,
        plane: Plane::ResourceManager,
        path: format!("/subscriptions/{subscription}/resourcegroups/{name}?api-version=2021-04-01"),
        body: None,
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
