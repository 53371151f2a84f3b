//! Logic Apps: they fire by the clock, with the rights of their identity.

use cudock_azure_testkit::{CloudSettings, SUBSCRIPTION};
use cudock_base::Timestamp;
use serde_json::{Value, json};

use crate::client::{Azure, prompt};

const WORKFLOW: &str = "/resourceGroups/reaper/providers/Microsoft.Logic/workflows/w";
const CONTRIBUTOR: &str = "b24988ac-6180-42a0-ab88-20f7382dd24c";

/// A workflow that deletes the group `g`, and its own group once that one is gone: the rights on it are gone, too, so the
/// answer is 403 then, as it was before they were effective.
fn workflow(start: Option<&str>, sure_from: &str) -> Value {
    let delete = |group: &str, after: Value| {
        let uri = format!(
            "https://management.azure.com/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}?api-version=2021-04-01"
        );
        json!({"type": "Http", "runAfter": after, "inputs": {
            "method": "DELETE", "uri": uri, "authentication": {"type": "ManagedServiceIdentity"},
        }})
    };
    let mut recurrence = json!({"frequency": "Minute", "interval": 15});
    if let Some(start) = start {
        recurrence["startTime"] = json!(start);
    }
    let is_gone = json!({"or": [
        {"equals": ["@outputs('Delete')?['statusCode']", 404]},
        {"and": [
            {"equals": ["@outputs('Delete')?['statusCode']", 403]},
            {"equals": ["@body('Delete')?['error']?['code']", "AuthorizationFailed"]},
            {"greaterOrEquals": ["@ticks(utcNow())", format!("@ticks('{sure_from}')")]},
        ]},
    ]});
    json!({"location": "eastus", "identity": {"type": "SystemAssigned"}, "properties": {"definition": {
        "triggers": {"At": {"type": "Recurrence", "recurrence": recurrence}},
        "actions": {
            "Delete": delete("g", json!({})),
            "If": {"type": "If", "expression": is_gone, "runAfter": {"Delete": ["Succeeded", "Failed"]},
                   "actions": {"Own": delete("reaper", json!({}))}},
        },
    }}})
}

fn later(azure: &Azure, seconds: u64) -> String {
    let millis = azure.stand_in.now().millis().unwrap() + seconds * 1000;
    Timestamp::from_millis(millis).to_string().replace(".000Z", "Z")
}

fn assign_role(azure: &Azure, group: &str, number: u32, principal: &Value, kind: &str) -> u16 {
    let name = format!("00000000-0000-4000-8000-{number:012}");
    let path = format!("/resourceGroups/{group}/providers/Microsoft.Authorization/roleAssignments/{name}");
    let role = format!(
        "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{CONTRIBUTOR}"
    );
    let properties = json!({"principalId": principal, "principalType": kind, "roleDefinitionId": role});
    azure.put(&path, &json!({"properties": properties})).status
}

/// A workflow that begins to delete after `start` seconds, and takes 403 for gone `patience` seconds later.
fn armed(settings: CloudSettings, start: u64, patience: u64) -> Option<Azure> {
    let azure = Azure::start(settings)?;
    azure.group("g");
    azure.group("reaper");
    let created =
        azure.put(WORKFLOW, &workflow(Some(&later(&azure, start)), &later(&azure, start + patience)));
    assert_eq!(created.status, 201);
    let principal = &created.body["identity"]["principalId"];
    assert_eq!(assign_role(&azure, "g", 1, principal, "ServicePrincipal"), 201);
    assert_eq!(assign_role(&azure, "reaper", 2, principal, "ServicePrincipal"), 201);
    Some(azure)
}

#[test]
fn at_its_time_it_deletes_the_group_and_then_itself() {
    let Some(azure) = armed(prompt(), 3600, 600) else { return };
    azure.pass(3500);
    assert_eq!(azure.get("/resourceGroups/g").status, 200);
    azure.pass(200);
    assert_eq!(azure.get("/resourceGroups/g").status, 404);
    assert_eq!(
        azure.get("/resourceGroups/reaper").status,
        200,
        "it stays until the group is seen to be gone"
    );
    azure.pass(900);
    assert_eq!(azure.stand_in.leftovers(), Vec::<String>::new());
    assert_eq!(azure.stand_in.workflow_runs().len(), 2);
}

#[test]
fn a_role_that_is_not_effective_yet_fails_and_the_next_run_repeats_it() {
    let Some(azure) = armed(CloudSettings { role_delay: 100_000, seed: 5, ..prompt() }, 60, 100_000) else {
        return;
    };
    azure.pass(120);
    let first = azure.stand_in.workflow_runs().remove(0);
    assert_eq!(first["actions"][0]["code"], 403, "{first}");
    assert_eq!(azure.get("/resourceGroups/g").status, 200);
    azure.pass(110_000);
    assert_eq!(azure.stand_in.leftovers(), Vec::<String>::new());
}

#[test]
fn a_deletion_that_fails_half_way_is_repeated() {
    let Some(azure) = armed(CloudSettings { failing_group_deletions: 2, ..prompt() }, 60, 600) else {
        return;
    };
    azure.pass(300);
    assert_eq!(azure.get("/resourceGroups/g").status, 200);
    azure.pass(4 * 900);
    assert_eq!(azure.stand_in.leftovers(), Vec::<String>::new());
}

#[test]
fn without_a_start_time_it_fires_at_once() {
    let Some(azure) = Azure::start(prompt()) else { return };
    azure.group("reaper");
    azure.put(WORKFLOW, &workflow(None, "2026-11-17T00:00:00Z"));
    azure.pass(1);
    assert_eq!(azure.stand_in.workflow_runs().len(), 1);
}

#[test]
fn a_trigger_tells_when_it_fires_next_and_a_disabled_one_does_not() {
    let Some(azure) = armed(prompt(), 3600, 600) else { return };
    let trigger = azure.get(&format!("{WORKFLOW}/triggers/At")).body;
    let next = Timestamp::parse(trigger["properties"]["nextExecutionTime"].as_str().unwrap()).unwrap();
    assert!(next > azure.stand_in.now());
    azure.post(&format!("{WORKFLOW}/disable"), &json!({}));
    azure.pass(10_000);
    assert!(azure.stand_in.workflow_runs().is_empty());
}

#[test]
fn new_principals_are_found_only_with_their_type_and_contributors_assign_nothing() {
    let Some(azure) = Azure::start(CloudSettings { may_assign_roles: false, ..prompt() }) else { return };
    azure.group("reaper");
    let created = azure.put(WORKFLOW, &workflow(Some(&later(&azure, 3600)), &later(&azure, 7200)));
    let principal = created.body["identity"]["principalId"].clone();
    assert_eq!(assign_role(&azure, "reaper", 1, &principal, "ServicePrincipal"), 403);
    let Some(azure) = armed(prompt(), 3600, 600) else { return };
    let principal = azure.get(WORKFLOW).body["identity"]["principalId"].clone();
    assert_eq!(assign_role(&azure, "g", 3, &principal, "User"), 400);
    assert_eq!(assign_role(&azure, "g", 1, &principal, "ServicePrincipal"), 200, "repeated");
    assert_eq!(assign_role(&azure, "g", 3, &principal, "ServicePrincipal"), 409, "another name for the same");
}

#[test]
fn actions_that_are_not_supported_are_refused() {
    let Some(azure) = Azure::start(prompt()) else { return };
    azure.group("reaper");
    let mut body = workflow(None, "2026-11-17T00:00:00Z");
    body["properties"]["definition"]["actions"]["Delete"]["type"] = json!("Wait");
    assert_eq!(azure.put(WORKFLOW, &body).code(), "InvalidTemplate");
}
