//! Finds and deletes what was left behind: unfinished entries of the journal, and resource groups that it has lost.
//!
//! The journal is that of one state directory. A run that another one made, according to the tags,
//! may be in use, so it is listed, and deleted only if its time to live is over or the user names
//! it.

use std::collections::BTreeMap;

use cudock_azure::{
    Body, Call, DeploymentState, Plane, cleanup_of_run, group_name, is_run_id, reaper_call, reaper_group_name,
};
use cudock_base::{Timestamp, UsageError};
use cudock_http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::create::requester::Owner;
use crate::create::run::Deployer;
use crate::delete::down::cancel_call;
use crate::error::DeployError;
use crate::journal::DeploymentRecord;
use crate::observe::response_body;

/// The owner and subscription whose leftovers are deleted.
#[derive(Debug, Clone, Copy)]
pub struct GcScope<'a> {
    pub subscription: &'a str,
    pub owner: &'a Owner,
    /// Runs that are deleted whosever they are.
    pub runs: &'a [String],
    /// Lists what would be deleted.
    pub is_dry_run: bool,
}

/// The report of `cudock gc`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct GcReport {
    pub found: Vec<Leftover>,
    /// Whether it was a dry run: nothing was deleted.
    pub dry_run: bool,
}

impl GcReport {
    pub fn has_failed(&self) -> bool {
        self.found.iter().any(|leftover| leftover.error.is_some())
    }
}

/// Something that was left behind, or may have been.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Leftover {
    pub run_id: String,
    pub name: Option<String>,
    pub reason: String,
    /// Whether the journal knows it.
    pub in_journal: bool,
    /// When the cloud deletes it by itself.
    pub expires: Option<String>,
    /// Whether it stays unless `--run` names it: it may run for another state directory.
    pub kept: bool,
    pub deleted: bool,
    pub error: Option<String>,
}

/// Why an entry of the journal is a leftover; none if it is meant to exist. No command is working on it.
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
        self.check_named(scope)?;
        let mut found = Vec::new();
        for record in self.journal.existing()? {
            let Some(reason) = leftover_reason(&record, self.cloud.now()) else { continue };
            let Some(_lock) = self.journal.lock(&record.run_id)? else { continue };
            let deleted = if scope.is_dry_run { None } else { Some(self.delete(&record)) };
            found.push(Leftover::of_record(record, reason).with(deleted.as_ref()));
        }
        for (run_id, lost) in self.lost_runs(scope)? {
            if self.is_known(&run_id)? || !self.has_group(scope.subscription, &run_id)? {
                continue;
            }
            let is_kept = matches!(lost.claim, Claim::OfAnother { .. });
            let deleted =
                (!is_kept && !scope.is_dry_run).then(|| self.delete_lost(scope.subscription, &run_id));
            found.push(Leftover::of_lost(run_id, lost).with(deleted.as_ref()));
        }
        Ok(GcReport { found, dry_run: scope.is_dry_run })
    }

    /// Refuses runs that are named and are none, that the journal knows, or that do not exist.
    fn check_named(&self, scope: &GcScope<'_>) -> Result<(), DeployError> {
        for run_id in scope.runs {
            if !is_run_id(run_id) {
                let error = UsageError::new(format!("`{run_id}` is not a run id of 12 hexadecimal digits"));
                return Err(error.hint("`cudock gc` lists them").into());
            }
            if self.is_known(run_id)? {
                let error = UsageError::new(format!("the journal knows run `{run_id}`"));
                return Err(error.hint(format!("`cudock down {run_id}` deletes it")).into());
            }
            if !self.has_group(scope.subscription, run_id)? {
                let error = UsageError::new(format!("no run `{run_id}` in the subscription"));
                return Err(error.hint("`cudock gc` lists them").into());
            }
        }
        Ok(())
    }

    /// Whether a run is in the journal and was not deleted. The journal has every run before its group exists, so what it
    /// does not have now was lost, or was made by another state directory.
    fn is_known(&self, run_id: &str) -> Result<bool, DeployError> {
        Ok(self.journal.run(run_id)?.is_some_and(|run| run.state != DeploymentState::Gone))
    }

    /// The runs whose groups exist in the subscription and that may be deleted or kept: the user's, expired ones, and those
    /// that are named, which the Resource Graph may not list yet.
    fn lost_runs(&self, scope: &GcScope<'_>) -> Result<BTreeMap<String, LostRun>, DeployError> {
        let groups = self
            .cloud
            .list(&graph_call(scope.subscription))
            .map_err(|error| DeployError::cloud("cannot search for leftover resource groups", error))?;
        let now = self.cloud.now();
        let mut runs: BTreeMap<String, LostRun> =
            groups.iter().filter_map(|group| lost_run(group, scope, now)).collect();
        for run_id in scope.runs {
            runs.entry(run_id.clone()).or_insert_with(LostRun::named);
        }
        Ok(runs)
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
        let reaper = response_body(self.deleter, &reaper_call(subscription, run_id), &mut None)
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
    fn of_record(record: DeploymentRecord, reason: &str) -> Self {
        Self {
            run_id: record.run_id,
            name: Some(record.name),
            reason: reason.to_owned(),
            in_journal: true,
            expires: Some(record.expires.to_string()),
            kept: false,
            deleted: false,
            error: None,
        }
    }

    fn of_lost(run_id: String, lost: LostRun) -> Self {
        Self {
            run_id,
            name: lost.name,
            reason: lost.claim.reason(),
            in_journal: false,
            expires: lost.expires.map(|time| time.to_string()),
            kept: matches!(lost.claim, Claim::OfAnother { .. }),
            deleted: false,
            error: None,
        }
    }

    /// Adds the result of its deletion, if that was tried.
    fn with(self, deleted: Option<&Result<(), DeployError>>) -> Self {
        let error = match deleted {
            Some(Err(error)) => Some(cudock_base::text::error_chain(error)),
            _ => None,
        };
        Self { deleted: matches!(deleted, Some(Ok(()))), error, ..self }
    }
}

/// A run of which the journal knows nothing.
#[derive(Debug, PartialEq, Eq)]
struct LostRun {
    name: Option<String>,
    expires: Option<Timestamp>,
    claim: Claim,
}

impl LostRun {
    /// A run of which only the id is known.
    fn named() -> Self {
        Self { name: None, expires: None, claim: Claim::Named }
    }
}

/// The owner of a run, according to its tags.
#[derive(Debug, PartialEq, Eq)]
enum Claim {
    Expired,
    /// This state directory made it, and its journal was lost.
    Own,
    /// The user named it.
    Named,
    /// Another state directory of the user made it, and may know it.
    OfAnother {
        owner: String,
    },
}

impl Claim {
    fn reason(&self) -> String {
        match self {
            Self::Expired => "the journal does not know it, and its time to live is over".to_owned(),
            Self::Own => "the journal does not know it".to_owned(),
            Self::Named => "it was named".to_owned(),
            Self::OfAnother { owner } => format!("another state directory of {owner} made it"),
        }
    }
}

/// Reads a row of the Resource Graph. A group without a run id that could be one of ours is never deleted.
fn lost_run(group: &Value, scope: &GcScope<'_>, now: Timestamp) -> Option<(String, LostRun)> {
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
    let expires = tag("cudock-delete-after").and_then(Timestamp::parse);
    let claim = match tag("cudock-owner") {
        _ if expires.is_some_and(|end| end <= now) => Claim::Expired,
        _ if scope.runs.iter().any(|named| named == run_id) => Claim::Named,
        Some(owner) => claim(owner, tag("cudock-state"), scope.owner)?,
        None => return None,
    };
    Some((run_id.to_owned(), LostRun { name: tag("cudock-name").map(str::to_owned), expires, claim }))
}

/// The owner of a run with these tags; none if it belongs to another user. Earlier versions did not
/// record the state directory.
fn claim(tagged: &str, state: Option<&str>, owner: &Owner) -> Option<Claim> {
    if tagged == owner.name && state.is_some() && state == owner.state.as_deref() {
        return Some(Claim::Own);
    }
    let user = |name: &str| name.split('@').next().map(str::to_owned);
    (user(tagged) == user(&owner.name)).then(|| Claim::OfAnother { owner: tagged.to_owned() })
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

    fn owner() -> Owner {
        Owner { name: "me@laptop".to_owned(), state: Some("aaaaaaaaaaaa".to_owned()) }
    }

    /// The claim on a group with these tags, if it is one of a run.
    fn claim_of(name: &str, tags: &Value, runs: &[String]) -> Option<Claim> {
        let now = Timestamp::parse("2026-11-17T12:00:00Z").unwrap();
        let group = json!({"id": "x", "name": name, "tags": tags});
        let owner = owner();
        let scope = GcScope { subscription: "s", owner: &owner, runs, is_dry_run: false };
        lost_run(&group, &scope, now).map(|(_, lost)| lost.claim)
    }

    #[test]
    fn only_what_this_state_directory_made_and_what_is_expired_is_a_leftover() {
        let (id, name) = ("0123456789ab", "cudock-0123456789ab");
        let another = |owner: &str| Some(Claim::OfAnother { owner: owner.to_owned() });
        let mine = json!({"cudock-run": id, "cudock-owner": "me@laptop", "cudock-state": "aaaaaaaaaaaa"});
        let with = |key: &str, value: &str| {
            let mut tags = mine.clone();
            tags[key] = json!(value);
            tags
        };
        let (past, future) = ("2026-11-17T11:59:59Z", "2026-11-17T12:00:01Z");
        let cases = [
            ("own", name, mine.clone(), Some(Claim::Own)),
            (
                "own, the reaper's",
                "CUDOCK-0123456789ab-reaper",
                json!({"Cudock-Run": id, "cudock-owner": "me@laptop", "Cudock-State": "aaaaaaaaaaaa"}),
                Some(Claim::Own),
            ),
            ("of another state directory", name, with("cudock-state", "bbbbbbbbbbbb"), another("me@laptop")),
            (
                "of a version without the tag",
                name,
                json!({"cudock-run": id, "cudock-owner": "me@laptop"}),
                another("me@laptop"),
            ),
            ("of another machine", name, with("cudock-owner", "me@desktop"), another("me@desktop")),
            (
                "of another state directory, expired",
                name,
                json!({"cudock-run": id, "cudock-owner": "me@laptop", "cudock-delete-after": past}),
                Some(Claim::Expired),
            ),
            ("own, not yet expired", name, with("cudock-delete-after", future), Some(Claim::Own)),
            ("of somebody else", name, with("cudock-owner", "you@laptop"), None),
            ("without an owner", name, json!({"cudock-run": id, "cudock-state": "aaaaaaaaaaaa"}), None),
            (
                "of somebody else, expired",
                name,
                json!({"cudock-run": id, "cudock-owner": "you@laptop", "cudock-delete-after": past}),
                Some(Claim::Expired),
            ),
            (
                "of somebody else, not yet expired",
                name,
                json!({"cudock-run": id, "cudock-owner": "you@laptop", "cudock-delete-after": future}),
                None,
            ),
            ("another group with the tag", "production", mine.clone(), None),
            ("no run id", "cudock-x", with("cudock-run", "x"), None),
            ("no tags", name, Value::Null, None),
        ];
        for (case, name, tags, expected) in cases {
            assert_eq!(claim_of(name, &tags, &[]), expected, "{case}");
        }
    }

    #[test]
    fn a_run_that_is_named_is_deleted_whosever_it_is() {
        let (id, name) = ("0123456789ab", "cudock-0123456789ab");
        for owner in ["me@laptop", "you@desktop"] {
            let tags = json!({"cudock-run": id, "cudock-owner": owner, "cudock-state": "bbbbbbbbbbbb"});
            assert_eq!(claim_of(name, &tags, &[id.to_owned()]), Some(Claim::Named), "{owner}");
        }
        let other = json!({"cudock-run": id, "cudock-owner": "me@laptop"});
        let claim = claim_of(name, &other, &["ffffffffffff".to_owned()]);
        assert_eq!(claim, Some(Claim::OfAnother { owner: "me@laptop".to_owned() }));
    }
}
