//! The definition of the Logic App: what it does, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::services::bodies::names::{Names, whole_seconds};
use crate::services::bodies::request::Empty;
use crate::services::bodies::template::RESOURCES;
use crate::services::reaper::{Address, FORCED, Outside, OutsideAction, TRIGGER};
use crate::spec::DeploymentSpec;

/// The api-version of Batch accounts.
const BATCH: &str = "2024-07-01";
const DELETE_GROUP: &str = "Delete_the_group";
/// Roles take up to ten minutes to take effect, and the deadline is at least 15 minutes after the assignment. Rights that are
/// missing this long after the deadline are gone.
const RIGHTS_ALLOWANCE: Duration = Duration::from_secs(3600);
const EVERY_END: [&str; 4] = ["Succeeded", "Failed", "Skipped", "TimedOut"];

pub(super) fn definition(spec: &DeploymentSpec, names: Names<'_>, outside: &Outside<'_>) -> Definition {
    let identity = spec.existing.reaper_identity.as_deref();
    let manager =
        |path: &str| format!("[uri(environment().resourceManager, '{}')]", path.trim_start_matches('/'));
    let scope = outside.scope.map(|(existing, kind)| names.existing(existing, kind)).unwrap_or_default();
    let mut actions = BTreeMap::new();
    let mut previous: Option<String> = None;
    let mut deleted = Vec::new();
    let group = OutsideAction {
        name: DELETE_GROUP.to_owned(),
        method: "DELETE",
        address: Address::ResourceManager(format!("{}?api-version={RESOURCES}&{FORCED}", names.group_id())),
        is_awaited: true,
    };
    for action in outside.actions.iter().chain([&group]) {
        let (uri, audience) = match &action.address {
            Address::ResourceManager(path) => (manager(path), "[environment().resourceManager]".to_owned()),
            // The host is read from the account, because it differs between clouds.
            Address::Batch { path, .. } => (
                format!("[concat('https://', reference('{scope}', '{BATCH}').accountEndpoint, '{path}')]"),
                "[environment().batch]".to_owned(),
            ),
        };
        let http = Action::http(action.method, uri, audience, identity, previous.as_deref());
        actions.insert(action.name.clone(), http);
        if action.is_awaited {
            deleted.push(action);
        }
        previous = Some(action.name.clone());
    }
    // A deleted resource responds with 404, and in some services with 204. A caller without rights
    // on a group gets 403 `AuthorizationFailed`, whether or not the group exists
    // (Azure/azure-rest-api-specs#9549, Azure/azure_preview_modules#279), and the deletion of a
    // group also deletes the reaper's own rights on it; those on other resources are removed after
    // what they are for. So that response means gone, once the rights must have been effective. If
    // the rights were revoked, the reaper could not delete anything either. The rights of a
    // prepared identity do not go with the group: there 403 means that they are missing. Policies
    // and deny assignments, which keep a group alive, have other codes.
    let is_late = || {
        let sure_from = whole_seconds(spec.expires.plus(RIGHTS_ALLOWANCE));
        Condition::GreaterOrEquals(["@ticks(utcNow())".to_owned(), format!("@ticks('{sure_from}')")])
    };
    let is_gone = |action: &&OutsideAction| {
        let name = &action.name;
        let status = |code: u16| {
            Condition::Equals([Value::from(format!("@outputs('{name}')?['statusCode']")), Value::from(code)])
        };
        let mut responses = vec![status(404), status(204)];
        if identity.is_none() {
            let mut lost_rights = vec![status(403), is_late()];
            if matches!(action.address, Address::ResourceManager(_)) {
                let code = Value::from(format!("@body('{name}')?['error']?['code']"));
                lost_rights.push(Condition::Equals([code, Value::from("AuthorizationFailed")]));
            }
            responses.push(Condition::And(lost_rights));
        }
        Condition::Or(responses)
    };
    let own = format!("{}?api-version={RESOURCES}", names.reaper_group_id());
    let delete_own =
        Action::http("DELETE", manager(&own), "[environment().resourceManager]".to_owned(), identity, None);
    actions.insert(
        "If_everything_is_gone".to_owned(),
        Action::If {
            expression: Condition::And(deleted.iter().map(is_gone).collect()),
            actions: BTreeMap::from([("Delete_this_group".to_owned(), delete_own)]),
            run_after: run_after(Some(DELETE_GROUP)),
        },
    );
    Definition {
        schema: "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
        content_version: "1.0.0.0",
        parameters: Empty {},
        triggers: BTreeMap::from([(
            TRIGGER,
            Trigger {
                kind: "Recurrence",
                recurrence: Recurrence {
                    frequency: "Minute",
                    interval: 15,
                    start_time: whole_seconds(spec.expires),
                },
            },
        )]),
        actions,
        outputs: Empty {},
    }
}

fn run_after(previous: Option<&str>) -> BTreeMap<String, Vec<&'static str>> {
    previous.map(|name| (name.to_owned(), EVERY_END.to_vec())).into_iter().collect()
}

#[derive(Debug, Serialize)]
pub(super) struct WorkflowProperties {
    pub(super) state: &'static str,
    pub(super) definition: Definition,
    pub(super) parameters: Empty,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Definition {
    #[serde(rename = "$schema")]
    schema: &'static str,
    content_version: &'static str,
    parameters: Empty,
    triggers: BTreeMap<&'static str, Trigger>,
    actions: BTreeMap<String, Action>,
    outputs: Empty,
}

#[derive(Debug, Serialize)]
struct Trigger {
    #[serde(rename = "type")]
    kind: &'static str,
    recurrence: Recurrence,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Recurrence {
    frequency: &'static str,
    interval: u32,
    /// Start of the recurrence; without it the trigger fires at once.
    start_time: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
enum Action {
    #[serde(rename_all = "camelCase")]
    Http {
        inputs: HttpInputs,
        /// The action ends with the first response instead of following the operation.
        operation_options: &'static str,
        run_after: BTreeMap<String, Vec<&'static str>>,
    },
    #[serde(rename_all = "camelCase")]
    If {
        expression: Condition,
        actions: BTreeMap<String, Action>,
        run_after: BTreeMap<String, Vec<&'static str>>,
    },
}

impl Action {
    fn http(
        method: &'static str,
        uri: String,
        audience: String,
        identity: Option<&str>,
        previous: Option<&str>,
    ) -> Self {
        Self::Http {
            inputs: HttpInputs {
                method,
                uri,
                authentication: Authentication {
                    kind: "ManagedServiceIdentity",
                    audience,
                    identity: identity.map(str::to_owned),
                },
                retry_policy: RetryPolicy { kind: "fixed", interval: "PT30S", count: 4 },
            },
            operation_options: "DisableAsyncPattern",
            run_after: run_after(previous),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HttpInputs {
    method: &'static str,
    uri: String,
    authentication: Authentication,
    retry_policy: RetryPolicy,
}

#[derive(Debug, Serialize)]
struct Authentication {
    #[serde(rename = "type")]
    kind: &'static str,
    audience: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
}

#[derive(Debug, Serialize)]
struct RetryPolicy {
    #[serde(rename = "type")]
    kind: &'static str,
    interval: &'static str,
    count: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Equals([Value; 2]),
    #[serde(rename = "greaterOrEquals")]
    GreaterOrEquals([String; 2]),
}
