//! The definition of the Logic App: what it does, and when.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::services::bodies::names::{Names, whole_seconds};
use crate::services::bodies::template::RESOURCES;
use crate::services::reaper::outside::{Address, Outside, OutsideAction};
use crate::spec::DeploymentSpec;

pub(crate) const TRIGGER: &str = "At_the_deadline";
/// Virtual machines are deleted without waiting for their shutdown.
pub(crate) const FORCED: &str = "forceDeletionTypes=Microsoft.Compute%2FvirtualMachines";
const RESOURCE_MANAGER: &str = "[environment().resourceManager]";
/// The api-version of Batch accounts.
const BATCH: &str = "2024-07-01";
const DELETE_GROUP: &str = "Delete_the_group";
/// Roles take up to ten minutes to take effect, and the deadline is at least 15 minutes after the assignment. Rights that are
/// missing this long after the deadline are gone.
const RIGHTS_ALLOWANCE: Duration = Duration::from_secs(3600);
const EVERY_END: [&str; 4] = ["Succeeded", "Failed", "Skipped", "TimedOut"];

pub(super) fn definition(spec: &DeploymentSpec, names: Names<'_>, outside: &Outside<'_>) -> Value {
    let identity = spec.existing.reaper_identity.as_deref();
    let manager =
        |path: &str| format!("[uri(environment().resourceManager, '{}')]", path.trim_start_matches('/'));
    let scope = outside.scope.map(|(existing, kind)| names.existing(existing, kind)).unwrap_or_default();
    let mut actions = Map::new();
    let mut previous = None;
    let mut deleted = Vec::new();
    let group = OutsideAction {
        name: DELETE_GROUP.to_owned(),
        method: "DELETE",
        address: Address::ResourceManager(format!("{}?api-version={RESOURCES}&{FORCED}", names.group_id())),
        is_awaited: true,
    };
    for action in outside.actions.iter().chain([&group]) {
        let (uri, audience) = match &action.address {
            Address::ResourceManager(path) => (manager(path), RESOURCE_MANAGER),
            // The host is read from the account, because it differs between clouds.
            Address::Batch { path, .. } => (
                format!("[concat('https://', reference('{scope}', '{BATCH}').accountEndpoint, '{path}')]"),
                "[environment().batch]",
            ),
        };
        let http = http(action.method, &uri, audience, identity, previous);
        actions.insert(action.name.clone(), http);
        if action.is_awaited {
            deleted.push(action);
        }
        previous = Some(action.name.as_str());
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
        json!({"greaterOrEquals": ["@ticks(utcNow())", format!("@ticks('{sure_from}')")]})
    };
    let is_gone = |action: &&OutsideAction| {
        let name = &action.name;
        let status = |code: u16| json!({"equals": [format!("@outputs('{name}')?['statusCode']"), code]});
        let mut responses = vec![status(404), status(204)];
        if identity.is_none() {
            let mut lost_rights = vec![status(403), is_late()];
            if matches!(action.address, Address::ResourceManager(_)) {
                let code = format!("@body('{name}')?['error']?['code']");
                lost_rights.push(json!({"equals": [code, "AuthorizationFailed"]}));
            }
            responses.push(json!({"and": lost_rights}));
        }
        json!({"or": responses})
    };
    let own = format!("{}?api-version={RESOURCES}", names.reaper_group_id());
    let delete_own = http("DELETE", &manager(&own), RESOURCE_MANAGER, identity, None);
    let last_step = json!({
        "type": "If",
        "expression": {"and": deleted.iter().map(is_gone).collect::<Vec<_>>()},
        "actions": {"Delete_this_group": delete_own},
        "runAfter": run_after(Some(DELETE_GROUP)),
    });
    actions.insert("If_everything_is_gone".to_owned(), last_step);
    json!({
        "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
        "contentVersion": "1.0.0.0",
        "parameters": {},
        "triggers": {TRIGGER: {
            "type": "Recurrence",
            // Without a start time the trigger fires at once.
            "recurrence": {"frequency": "Minute", "interval": 15, "startTime": whole_seconds(spec.expires)},
        }},
        "actions": actions,
        "outputs": {},
    })
}

fn run_after(previous: Option<&str>) -> Value {
    previous.map_or_else(|| json!({}), |name| json!({name: EVERY_END}))
}

fn http(method: &str, uri: &str, audience: &str, identity: Option<&str>, previous: Option<&str>) -> Value {
    json!({
        "type": "Http",
        "inputs": {
            "method": method,
            "uri": uri,
            "authentication": {"type": "ManagedServiceIdentity", "audience": audience, "identity": identity},
            "retryPolicy": {"type": "fixed", "interval": "PT30S", "count": 4},
        },
        // The action ends with the first response instead of following the operation.
        "operationOptions": "DisableAsyncPattern",
        "runAfter": run_after(previous),
    })
}
