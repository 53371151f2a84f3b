//! Which time is billed, by the clocks of the services.
//!
//! Begin and end come from the services' own responses. For what was deleted, the end is when the service accepted the
//! deletion, which only the activity log knows.

use std::time::Duration;

use cudock_azure::{Call, DeploymentIdentity, Plane, Target, group_name};
use cudock_base::{Timestamp, Usd, percent};
use cudock_http::Method;
use serde_json::Value;

use crate::cloud::{ApiError, CloudApi};
use crate::journal::DeploymentRecord;

/// The activity log has events from before the deployment by clocks that differ.
const LOG_MARGIN: Duration = Duration::from_secs(24 * 3600);

const MILLIS_PER_HOUR: u128 = 3_600_000;

/// When billing began and ended, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BilledTime {
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl BilledTime {
    /// Whether it will not change anymore.
    pub(crate) fn is_final(self) -> bool {
        self.from.is_some() && self.until.is_some()
    }

    /// The time that is billed until now.
    pub(crate) fn length(self, now: Timestamp) -> Duration {
        self.from.map_or(Duration::ZERO, |from| self.until.unwrap_or(now).since(from))
    }

    /// Billed seconds, rounded to the nearest.
    pub(crate) fn seconds(self, now: Timestamp) -> u64 {
        let length = self.length(now);
        length.as_secs() + u64::from(length.subsec_millis() >= 500)
    }

    pub(crate) fn cost(self, price_per_hour: Usd, now: Timestamp) -> Usd {
        price_per_hour.share(self.length(now).as_millis(), MILLIS_PER_HOUR)
    }
}

/// Reads from the activity log what the services themselves can no longer tell.
pub(crate) fn billed_time_of_deleted(
    cloud: &dyn CloudApi,
    record: &DeploymentRecord,
) -> Result<BilledTime, ApiError> {
    let events = cloud.list(&activity_call(record))?;
    Ok(read_events(&events, &record.identity))
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

/// The types of resources, in lower case, whose creation begins the bill and whose deletion ends it. Where only the start
/// of a container or a node begins it, the activity log does not know when that was.
const fn billed_types(target: Target) -> (&'static [&'static str], &'static [&'static str]) {
    const MACHINES: &[&str] = &["microsoft.compute/virtualmachines"];
    const CONTAINERS: &[&str] = &["microsoft.containerinstance/containergroups"];
    const APPS: &str = "microsoft.app/containerapps";
    const JOBS: &str = "microsoft.machinelearningservices/workspaces/jobs";
    const ENDPOINTS: &str = "microsoft.machinelearningservices/workspaces/onlineendpoints";
    const MODELS: &str = "microsoft.machinelearningservices/workspaces/onlineendpoints/deployments";
    match target {
        Target::Vm => (MACHINES, MACHINES),
        Target::Aci => (CONTAINERS, CONTAINERS),
        Target::ContainerApps => (&[APPS], &[APPS, "microsoft.app/jobs"]),
        Target::Batch => (&[], &["microsoft.batch/batchaccounts"]),
        Target::Ml => (&[MODELS], &[MODELS, ENDPOINTS, JOBS]),
    }
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
    let (created, deleted) = billed_types(identity.target);
    let acts = |operation: &str, verb: &str, types: &[&str]| {
        operation.strip_suffix(verb).is_some_and(|resource_type| types.contains(&resource_type))
    };
    let accepted = ["Accepted", "Started", "Succeeded"];
    // A container group is billed from the start of its containers on, which ends its creation.
    let created_with: &[&str] = if identity.target == Target::Aci { &["Succeeded"] } else { &accepted };
    BilledTime {
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
    use cudock_azure::WorkShape;
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
            target: Target::Vm,
            region: "eastus".into(),
            work: WorkShape::Job { tasks: 1 },
            is_spot: false,
            workspace: None,
            batch_account: None,
            pool: None,
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
        assert_eq!(billed.seconds(Timestamp::from_millis(0)), 7200);
        assert_eq!(billed.cost(Usd::from_cents(150), Timestamp::from_millis(0)), Usd::from_cents(300));
        assert_eq!(read_events(&[], &identity), BilledTime::default());
    }
}
