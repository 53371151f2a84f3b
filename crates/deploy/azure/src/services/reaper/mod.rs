//! Makes the cloud delete a deployment by itself: both groups and a Logic App, in one request.
//!
//! Azure carries the request out even if the client is gone. The Logic App fires at the deadline
//! and every 15 minutes after it, so a deletion that fails is repeated. It is in a group of its
//! own, because the deletion of a group may stop half-way, and deletes that group only once
//! everything else is gone.

mod outside;
mod workflow;

pub(super) use outside::{Address, Outside, OutsideAction};
pub(super) use workflow::{FORCED, TRIGGER};

use serde_json::{Map, Value, json};

use crate::call::{Body, Call, Plane};
use crate::services::bodies::names::{Names, Tags};
use crate::services::bodies::request::{Identity, body, get};
use crate::services::bodies::template::{
    DEPLOYMENTS, RESOURCES, RoleAssignment, in_subscription, nested, template_in_group,
};
use crate::services::reaper::workflow::definition;
use crate::spec::DeploymentSpec;

pub(super) const LOGIC: &str = "2019-05-01";
/// The Logic App and the nested deployment that creates it.
pub(super) const NAME: &str = "reaper";
const CONTRIBUTOR: &str = "b24988ac-6180-42a0-ab88-20f7382dd24c";

/// The body of the first request.
pub(super) fn deployment(spec: &DeploymentSpec, outside: &Outside<'_>) -> Body {
    let names = Names::of_spec(spec);
    let group = |name: String| {
        json!({
            "type": "Microsoft.Resources/resourceGroups",
            "apiVersion": RESOURCES,
            "name": name,
            "location": spec.region,
            "tags": Tags::new(spec),
            "properties": {},
        })
    };
    let groups = [names.group_id(), names.reaper_group_id()];
    let mut resources = vec![
        group(names.group()),
        group(names.reaper_group()),
        nested(NAME, &names.reaper_group(), &workflow(spec, outside), None, &groups),
    ];
    if spec.existing.reaper_identity.is_none() {
        let reaper = format!("{}/providers/{DEPLOYMENTS}/{NAME}", names.reaper_group_id());
        let principal = format!("[reference('{reaper}', '{RESOURCES}').outputs.principalId.value]");
        let parameter = Some(("principalId", principal.as_str()));
        let mut rights = vec![(names.group(), rights(names, "group", None))];
        if let Some((existing, resource_type)) = outside.scope {
            let scope = format!("{resource_type}/{}", existing.name);
            rights.push((existing.group.to_owned(), self::rights(names, "outside", Some(scope))));
        }
        resources.extend(rights.into_iter().map(|(group, template)| {
            nested(&names.unique(), &group, &template, parameter, std::slice::from_ref(&reaper))
        }));
    }
    body(json!({
        // The region that keeps the record.
        "location": spec.region,
        "tags": Tags::new(spec),
        "properties": in_subscription(&resources),
    }))
}

/// The reaper's rights on the group that the template is deployed to, or on a resource in it.
fn rights(names: Names<'_>, purpose: &str, scope: Option<String>) -> Value {
    let assignment = RoleAssignment {
        purpose,
        role: CONTRIBUTOR,
        principal: "[parameters('principalId')]",
        scope,
        after: None,
        description: "cudock: lets the reaper delete an expired deployment",
    };
    template_in_group(&[assignment.resource(names)], Some(("principalId", "string")), None)
}

/// The rights on an existing resource, which are not deleted with a group.
pub(super) fn outside_rights(names: Names<'_>, scope: &str) -> String {
    format!("{scope}/providers/Microsoft.Authorization/roleAssignments/{}", names.uuid("outside"))
}

/// The resources that a Logic App deletes outside of the run's groups, in its order. Only those
/// that have the run's id in their name: others than its creator may have changed it.
pub(super) fn outside_actions(names: Names<'_>, workflow: &Value) -> Vec<OutsideAction> {
    let none = Map::new();
    let actions =
        workflow.pointer("/properties/definition/actions").and_then(Value::as_object).unwrap_or(&none);
    let follows = |action: &Value, previous: Option<&str>| {
        let after = action.get("runAfter").and_then(Value::as_object).and_then(|after| after.keys().next());
        after.map(String::as_str) == previous
    };
    let mut found = Vec::new();
    let mut previous = None;
    while let Some((name, action)) = actions.iter().find(|(_, action)| follows(action, previous)) {
        previous = Some(name.as_str());
        found.extend(outside_action(names, name, action));
    }
    found
}

fn outside_action(names: Names<'_>, name: &str, action: &Value) -> Option<OutsideAction> {
    let input = |field: &str| action.pointer(&format!("/inputs/{field}")).and_then(Value::as_str);
    let method = ["DELETE", "POST"].into_iter().find(|method| Some(*method) == input("method"))?;
    let (host, path) = input("uri")?.strip_prefix("https://")?.split_once('/')?;
    let path = format!("/{path}");
    let resource = path.split('?').next().unwrap_or_default();
    let is_group = resource.eq_ignore_ascii_case(&names.group_id());
    if is_group || !resource.to_ascii_lowercase().contains(names.run_id) {
        return None;
    }
    let address = match host.split('.').collect::<Vec<_>>().as_slice() {
        // This host was read from the account when the Logic App was created.
        [account, region, "batch", ..] => {
            let (account, region) = ((*account).to_owned(), (*region).to_owned());
            Address::Batch { plane: Plane::Batch { account, region, endpoint: Some(host.to_owned()) }, path }
        }
        _ if resource.starts_with("/subscriptions/") => Address::ResourceManager(path),
        _ => return None,
    };
    Some(OutsideAction { name: name.to_owned(), method, address, is_awaited: true })
}

/// The request for the Logic App of a run.
pub fn reaper_call(subscription: &str, run_id: &str) -> Call {
    get(&workflow_id(Names { subscription, run_id }), LOGIC)
}

/// The path that makes the reaper delete a run before its deadline.
pub fn reaper_run_path(subscription: &str, run_id: &str) -> String {
    let workflow = workflow_id(Names { subscription, run_id });
    format!("{workflow}/triggers/{TRIGGER}/run?api-version={LOGIC}")
}

pub(super) fn workflow_id(names: Names<'_>) -> String {
    format!("{}/providers/Microsoft.Logic/workflows/{NAME}", names.reaper_group_id())
}

/// The Logic App, and its right to delete its own group.
fn workflow(spec: &DeploymentSpec, outside: &Outside<'_>) -> Value {
    let names = Names::of_spec(spec);
    let existing_identity = spec.existing.reaper_identity.as_deref();
    let workflow = json!({
        "type": "Microsoft.Logic/workflows",
        "apiVersion": LOGIC,
        "name": NAME,
        "location": spec.region,
        "tags": Tags::new(spec),
        "identity": existing_identity.map_or_else(Identity::system, Identity::user),
        "properties": {
            "state": "Enabled",
            "definition": definition(spec, names, outside),
            "parameters": {},
        },
    });
    if existing_identity.is_some() {
        return template_in_group(&[workflow], None, None);
    }
    let principal = format!(
        "[reference(resourceId('Microsoft.Logic/workflows', '{NAME}'), '{LOGIC}', 'full').identity.principalId]"
    );
    let own = RoleAssignment {
        purpose: "reaper",
        role: CONTRIBUTOR,
        principal: &principal,
        scope: None,
        after: Some(workflow_id(names)),
        description: "cudock: lets the reaper delete its own group",
    };
    let outputs = json!({"principalId": {"type": "string", "value": principal}});
    template_in_group(&[workflow, own.resource(names)], None, Some(&outputs))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_outside_is_read_in_order_and_only_if_it_belongs_to_the_run() {
        let names = Names { subscription: "s", run_id: "0123456789ab" };
        let http = |method: &str, uri: &str, after: &[&str]| {
            let after: Map<String, Value> =
                after.iter().map(|name| ((*name).to_owned(), json!([]))).collect();
            json!({"type": "Http", "inputs": {"method": method, "uri": uri}, "runAfter": after})
        };
        let job = "https://management.azure.com/subscriptions/s/resourceGroups/g/providers/M/w/jobs/cudock-0123456789ab";
        let group =
            "https://management.azure.com/subscriptions/s/resourceGroups/cudock-0123456789ab?api-version=1";
        let workflow = json!({"properties": {"definition": {"actions": {
            "Z_first": http("POST", &format!("{job}/cancel?api-version=1"), &[]),
            "A_second": http("DELETE", &format!("{job}?api-version=1"), &["Z_first"]),
            "Batch": http("DELETE", "https://a.eastus.batch.azure.com/jobs/cudock-0123456789AB?x=1", &["A_second"]),
            "Foreign": http("DELETE", "https://management.azure.com/subscriptions/s/resourceGroups/prod", &["Batch"]),
            "Elsewhere": http("DELETE", "https://example.com/0123456789ab", &["Foreign"]),
            "Delete_the_group": http("DELETE", group, &["Elsewhere"]),
            "If": {"type": "If", "runAfter": {"Delete_the_group": []}},
        }}}});
        let found = outside_actions(names, &workflow);
        let found: Vec<(&str, &str)> =
            found.iter().map(|action| (action.name.as_str(), action.method)).collect();
        assert_eq!(found, [("Z_first", "POST"), ("A_second", "DELETE"), ("Batch", "DELETE")]);
        assert!(outside_actions(names, &json!({})).is_empty());
    }
}
