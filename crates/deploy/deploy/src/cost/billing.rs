//! Which time is billed, by the clocks of the services.
//!
//! Begin and end come from the services' own responses. For what was deleted, the end is when the
//! service accepted the deletion, which only the activity log knows. A deployment that the cloud
//! deleted by itself may have begun later and ended sooner than can be found out then: such a time
//! is the most that was billed.

use std::time::Duration;

use cudock_azure::{Billing, Call, DeploymentIdentity, JobTime, Plane, WorkShape, group_name};
use cudock_base::text::percent;
use cudock_base::{Timestamp, Usd};
use cudock_http::Method;
use serde_json::Value;

use crate::cloud::{ApiError, CloudApi};
use crate::journal::{BilledTime, DeploymentRecord};

/// The activity log has events from before the deployment by clocks that differ.
const LOG_MARGIN: Duration = Duration::from_secs(24 * 3600);

const MILLIS_PER_HOUR: u128 = 3_600_000;

/// Rounds to the nearest second.
pub(crate) fn whole_seconds(length: Duration) -> u64 {
    length.as_secs() + u64::from(length.subsec_millis() >= 500)
}

impl DeploymentRecord {
    /// The spans in which something is billed: each node of an own cluster, or all machines
    /// together.
    pub(crate) fn billed_spans(&self, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let whole = self.billed.from.map(|from| (from, self.billed.until.unwrap_or(now)));
        match self.identity.node_idle.filter(|_| self.is_billed_by_node()) {
            // Jobs that were not observed may have kept any node busy.
            Some(_) if self.billed.is_at_most => {
                whole.into_iter().flat_map(|span| (0..self.instances).map(move |_| span)).collect()
            }
            Some(idle) => node_spans(&self.jobs, idle, self.billed.until, now),
            None => whole.into_iter().collect(),
        }
    }

    fn is_billed_by_node(&self) -> bool {
        self.identity.node_idle.is_some() && (!self.jobs.is_empty() || self.billed.is_at_most)
    }

    /// The time that is billed until now.
    pub(crate) fn billed_length(&self, now: Timestamp) -> Duration {
        self.billed_spans(now).iter().map(|(from, until)| until.since(*from)).sum()
    }

    /// The cost of a time that is billed.
    pub(crate) fn cost_of(&self, length: Duration) -> Usd {
        let machines = if self.is_billed_by_node() { u128::from(self.instances.max(1)) } else { 1 };
        self.price_per_hour.share(length.as_millis(), MILLIS_PER_HOUR * machines)
    }

    /// Its cost until now.
    pub(crate) fn billed_cost(&self, now: Timestamp) -> Usd {
        self.cost_of(self.billed_length(now))
    }
}

/// The spans in which each node of a cluster is billed. A node appears for a job, waits for the
/// next one when that has ended, and leaves after the idle time or with the cluster. Which of
/// several idle nodes gets the next job is not known; this assumes the one that has waited longest,
/// which costs the most.
fn node_spans(
    jobs: &[JobTime],
    idle: Duration,
    deleted: Option<Timestamp>,
    now: Timestamp,
) -> Vec<(Timestamp, Timestamp)> {
    let mut jobs: Vec<&JobTime> = jobs.iter().collect();
    jobs.sort_by_key(|job| job.from);
    let mut nodes: Vec<(Timestamp, Option<Timestamp>)> = Vec::new();
    for job in jobs {
        let is_idle = |since: Timestamp| since <= job.from && job.from < since.plus(idle);
        let idle_nodes = nodes.iter_mut().filter(|(_, since)| since.is_some_and(is_idle));
        match idle_nodes.min_by_key(|(_, since)| *since) {
            Some((_, until)) => *until = job.until,
            None => nodes.push((job.from, job.until)),
        }
    }
    let end = |until: Option<Timestamp>| match (until, deleted) {
        (Some(until), Some(deleted)) => until.plus(idle).min(deleted),
        (None, Some(deleted)) => deleted,
        (Some(until), None) => until.plus(idle).min(now.max(until)),
        (None, None) => now,
    };
    nodes.into_iter().map(|(from, until)| (from, end(until))).collect()
}

/// Whether the activity log knows the whole time that is billed: from the creation of something until its deletion.
pub(crate) fn is_in_activity_log(identity: &DeploymentIdentity) -> bool {
    (identity.billing().covers_jobs || matches!(identity.work, WorkShape::Serve { .. })) && !identity.is_spot
}

/// Reads times from the activity log that the services themselves no longer report, and adds them
/// to the known ones. If the cloud deleted the deployment by itself, it was billed at most from
/// `requested`, when the first request was sent that costs money, until its time to live was over.
pub(crate) fn billed_time_of_deleted(
    cloud: &dyn CloudApi,
    record: &DeploymentRecord,
    requested: Option<Timestamp>,
) -> Result<BilledTime, ApiError> {
    let events = cloud.list(&activity_call(record))?;
    let read = read_events(&events, &record.identity);
    let is_at_most = record.billed.is_at_most;
    let from = record.billed.from.or(read.from).or(requested.filter(|_| is_at_most));
    let until = match (record.identity.node_idle, read.until) {
        (Some(idle), Some(deleted)) if !record.jobs.is_empty() && !is_at_most => {
            node_spans(&record.jobs, idle, Some(deleted), deleted).into_iter().map(|(_, until)| until).max()
        }
        (_, until) => record.billed.until.or(until),
    };
    let until = until.or(Some(record.expires).filter(|_| is_at_most));
    Ok(BilledTime { from, until: until.filter(|_| from.is_some()), is_at_most })
}

/// The request for the events of a deployment's resource group.
fn activity_call(record: &DeploymentRecord) -> Call {
    let millis = record.created.millis().unwrap_or(0);
    let margin = u64::try_from(LOG_MARGIN.as_millis()).unwrap_or(u64::MAX);
    let since = Timestamp::from_millis(millis.saturating_sub(margin));
    let filter =
        format!("eventTimestamp ge '{since}' and resourceGroupName eq '{}'", billed_group(&record.identity));
    let path = format!(
        "/subscriptions/{}/providers/Microsoft.Insights/eventtypes/management/values?api-version=2015-04-01&$filter={}",
        record.identity.subscription,
        percent::encode(&filter)
    );
    Call { method: Method::GET, plane: Plane::ResourceManager, path, body: None }
}

/// The group in which the billed resources are.
fn billed_group(identity: &DeploymentIdentity) -> String {
    let existing = identity.workspace.as_ref().or(identity.batch_account.as_ref());
    let group = existing.and_then(|name| name.split_once('/')).map(|(group, _)| group.to_owned());
    group.unwrap_or_else(|| group_name(&identity.run_id))
}

/// The first creation and the first deletion of what is billed, without those that failed. A deletion counts from when it
/// was accepted.
fn read_events(events: &[Value], identity: &DeploymentIdentity) -> BilledTime {
    let failed: Vec<&str> = events
        .iter()
        .filter(|event| text(event, "/status/value") == "Failed")
        .map(|event| text(event, "/correlationId"))
        .filter(|id| !id.is_empty())
        .collect();
    let first = |statuses: &[&str], is_relevant: &dyn Fn(&str) -> bool| {
        events
            .iter()
            .filter(|event| statuses.contains(&text(event, "/status/value")))
            .filter(|event| !failed.contains(&text(event, "/correlationId")))
            // A group of the user's may have resources of others; all of ours have the run's id in their names.
            .filter(|event| text(event, "/resourceId").to_ascii_lowercase().contains(&identity.run_id))
            .filter(|event| is_relevant(&text(event, "/operationName/value").to_ascii_lowercase()))
            .filter_map(|event| Timestamp::parse(text(event, "/eventTimestamp")))
            .min()
    };
    let Billing { created, deleted, begins_when_complete, .. } = identity.billing();
    let acts = |operation: &str, verb: &str, types: &[&str]| {
        operation.strip_suffix(verb).is_some_and(|resource_type| types.contains(&resource_type))
    };
    let accepted = ["Accepted", "Started", "Succeeded"];
    let created_with: &[&str] = if begins_when_complete { &["Succeeded"] } else { &accepted };
    BilledTime {
        is_at_most: false,
        from: first(created_with, &|operation| {
            acts(operation, "/write", created) || operation == "microsoft.app/jobs/start/action"
        }),
        until: first(&accepted, &|operation| {
            acts(operation, "/delete", deleted)
                || acts(operation, "/cancel/action", deleted)
                || operation == "microsoft.resources/subscriptions/resourcegroups/delete"
        }),
    }
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use cudock_facts::services::AzureService;
    use serde_json::json;

    use super::*;

    fn event(operation: &str, status: &str, time: &str, id: &str, correlation: &str) -> Value {
        json!({
            "operationName": {"value": operation}, "status": {"value": status}, "eventTimestamp": time,
            "resourceId": id, "correlationId": correlation,
        })
    }

    #[test]
    fn billing_ends_when_a_deletion_that_did_not_fail_was_accepted() {
        let identity = DeploymentIdentity {
            subscription: "s".into(),
            run_id: "0123456789ab".into(),
            service: AzureService::Vm,
            region: "eastus".into(),
            work: WorkShape::Job { tasks: 1 },
            is_spot: false,
            workspace: None,
            batch_account: None,
            pool: None,
            endpoint: None,
            node_idle: None,
        };
        let group = "/subscriptions/s/resourceGroups/cudock-0123456789ab";
        let machine = format!("{group}/providers/Microsoft.Compute/virtualMachines/main");
        let (create, delete) = (
            "Microsoft.Compute/virtualMachines/write",
            "Microsoft.Resources/subscriptions/resourceGroups/delete",
        );
        let reaper = format!("{group}-reaper");
        let events = [
            event(create, "Started", "2026-11-17T01:00:00Z", &machine, "1"),
            event(create, "Succeeded", "2026-11-17T01:01:00Z", &machine, "1"),
            event(
                "Microsoft.Network/publicIPAddresses/write",
                "Started",
                "2026-11-17T00:59:00Z",
                &machine,
                "0",
            ),
            event(create, "Started", "2026-11-17T00:00:00Z", "/subscriptions/s/resourceGroups/other", "9"),
            event(delete, "Started", "2026-11-17T02:00:00Z", group, "2"),
            event(delete, "Failed", "2026-11-17T02:01:00Z", group, "2"),
            event(delete, "Accepted", "2026-11-17T03:00:00Z", group, "3"),
            event(delete, "Succeeded", "2026-11-17T03:02:00Z", group, "3"),
            event(delete, "Accepted", "2026-11-17T03:03:00Z", &reaper, "4"),
            json!({"unknown": true}),
        ];
        let billed = read_events(&events, &identity);
        assert_eq!(billed.from, Timestamp::parse("2026-11-17T01:00:00Z"));
        assert_eq!(billed.until, Timestamp::parse("2026-11-17T03:00:00Z"));
        assert_eq!(read_events(&[], &identity), BilledTime::default());
    }

    /// The seconds of each node, for jobs from and until these seconds.
    fn spans(jobs: &[(u64, Option<u64>)], deleted: Option<u64>, now: u64) -> Vec<(u64, u64)> {
        let time = |seconds: u64| Timestamp::from_millis(seconds * 1000);
        let jobs = jobs.iter().map(|(from, until)| JobTime {
            name: from.to_string(),
            from: time(*from),
            until: until.map(time),
        });
        let jobs: Vec<JobTime> = jobs.collect();
        let spans = node_spans(&jobs, Duration::from_secs(120), deleted.map(time), time(now));
        let seconds = |time: Timestamp| time.millis().unwrap() / 1000;
        spans.into_iter().map(|(from, until)| (seconds(from), seconds(until))).collect()
    }

    #[test]
    fn nodes_are_billed_from_their_first_job_until_they_leave_the_cluster() {
        for (case, jobs, deleted, now, expected) in [
            ("nothing ran", vec![], Some(50), 60, vec![]),
            ("it runs", vec![(100, None)], None, 250, vec![(100, 250)]),
            ("it waits", vec![(100, Some(200))], None, 250, vec![(100, 250)]),
            ("it has left", vec![(100, Some(200))], None, 999, vec![(100, 320)]),
            ("deleted while it waits", vec![(100, Some(200))], Some(210), 999, vec![(100, 210)]),
            ("deleted while it runs", vec![(100, None)], Some(210), 999, vec![(100, 210)]),
            ("it is used again", vec![(300, Some(400)), (100, Some(200))], Some(999), 999, vec![(100, 520)]),
            (
                "it left before the next job",
                vec![(100, Some(200)), (320, Some(400))],
                None,
                999,
                vec![(100, 320), (320, 520)],
            ),
            (
                "two at a time",
                vec![(100, Some(200)), (110, Some(250)), (260, Some(300))],
                Some(999),
                999,
                vec![(100, 420), (110, 370)],
            ),
        ] {
            assert_eq!(spans(&jobs, deleted, now), expected, "{case}");
        }
    }
}
