//! Templates: order, references, nested ones, what is refused, and what goes on without a client.

use std::collections::BTreeMap;

use cudock_azure_testkit::{CloudSettings, SUBSCRIPTION};
use serde_json::{Value, json};

use crate::client::{Azure, prompt};

const DEPLOYMENT: &str = "/providers/Microsoft.Resources/deployments/d";

fn in_subscription(resources: &Value) -> Value {
    json!({"location": "eastus", "properties": {"mode": "Incremental", "template": {"resources": resources}}})
}

fn group(name: &str) -> Value {
    json!({"type": "Microsoft.Resources/resourceGroups", "apiVersion": "2021-04-01", "name": name, "location": "eastus"})
}

/// A template within another one.
fn nested(name: &str, group: &str, template: &Value) -> Value {
    json!({
        "type": "Microsoft.Resources/deployments", "apiVersion": "2021-04-01", "name": name, "resourceGroup": group,
        "dependsOn": [format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}")],
        "properties": {
            "mode": "Incremental", "expressionEvaluationOptions": {"scope": "inner"}, "template": template,
        },
    })
}

#[test]
fn azure_carries_a_template_out_although_nobody_waits() {
    let Some(azure) = Azure::start(prompt()) else { return };
    let identity = json!({
        "type": "Microsoft.Storage/storageAccounts", "apiVersion": "2023-01-01", "location": "eastus",
        "name": "[concat('s', parameters('suffix'))]", "tags": {"where": "[resourceGroup().name]"}, "properties": {},
    });
    let mut inner = nested(
        "n",
        "g",
        &json!({
            "parameters": {"suffix": {"type": "string"}}, "resources": [identity],
            "outputs": {"id": {"type": "string", "value": "[resourceId('Microsoft.Storage/storageAccounts', 's1')]"}},
        }),
    );
    inner["properties"]["parameters"] = json!({"suffix": {"value": "1"}});
    // It refers to the output of the other one, and so comes after it.
    let outer = nested(
        "m",
        "g",
        &json!({"parameters": {"id": {"type": "string"}}, "resources": [{
            "type": "Microsoft.Storage/storageAccounts", "apiVersion": "2023-01-01", "name": "s2", "location": "eastus",
            "tags": {"first": "[parameters('id')]"}, "properties": {},
        }]}),
    );
    let mut outer = outer;
    let reference = format!(
        "[reference('/subscriptions/{SUBSCRIPTION}/resourceGroups/g{DEPLOYMENT_N}').outputs.id.value]"
    );
    outer["properties"]["parameters"] = json!({"id": {"value": reference}});
    let created = azure.put(DEPLOYMENT, &in_subscription(&json!([outer, inner, group("g")])));
    assert_eq!(
        (created.status, created.body["properties"]["provisioningState"].as_str()),
        (201, Some("Accepted"))
    );
    assert_eq!(azure.get("/resourceGroups/g").status, 404);
    azure.pass(60);
    let first = azure.get("/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/s1");
    assert_eq!(first.body["tags"]["where"], "g", "{}", azure.get(DEPLOYMENT).body);
    let second = azure.get("/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/s2");
    assert_eq!(second.body["tags"]["first"], first.body["id"]);
    assert_eq!(azure.get(DEPLOYMENT).body["properties"]["provisioningState"], "Succeeded");
}

const DEPLOYMENT_N: &str = "/providers/Microsoft.Resources/deployments/n";

#[test]
fn an_active_deployment_is_neither_replaced_nor_deleted_but_canceled() {
    let Some(azure) = Azure::start(prompt()) else { return };
    let slow = nested(
        "n",
        "g",
        &json!({"resources": [{
            "type": "Microsoft.App/managedEnvironments", "apiVersion": "2024-03-01", "name": "e", "location": "eastus",
            "properties": {},
        }]}),
    );
    let late = json!({
        "type": "Microsoft.Resources/resourceGroups", "apiVersion": "2021-04-01", "name": "late", "location": "eastus",
        "dependsOn": [format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/g{DEPLOYMENT_N}")],
    });
    let body = in_subscription(&json!([group("g"), slow, late]));
    azure.put(DEPLOYMENT, &body);
    azure.pass(20);
    assert_eq!(azure.put(DEPLOYMENT, &body).code(), "DeploymentActive");
    assert_eq!(azure.delete(DEPLOYMENT).status, 409);
    assert_eq!(azure.post(&format!("{DEPLOYMENT}/cancel"), &json!({})).status, 204);
    assert_eq!(azure.get(DEPLOYMENT).body["properties"]["provisioningState"], "Canceled");
    azure.pass(300);
    assert_eq!(azure.get("/resourceGroups/late").status, 404, "what had not begun does not begin");
    azure.wait(&azure.delete(DEPLOYMENT));
    assert_eq!(azure.get(DEPLOYMENT).code(), "DeploymentNotFound");
}

#[test]
fn quota_is_checked_before_anything_exists() {
    let quota = BTreeMap::from([("cores".to_owned(), 3)]);
    let Some(azure) = Azure::start(CloudSettings { quota, ..prompt() }) else { return };
    azure.group("g");
    let template = json!({"resources": [
        {"type": "Microsoft.Network/virtualNetworks", "apiVersion": "1", "name": "v", "location": "eastus", "properties": {}},
        {"type": "Microsoft.Compute/virtualMachines", "apiVersion": "1", "name": "vm", "location": "eastus",
         "properties": {"hardwareProfile": {"vmSize": "Standard_NC4as_T4_v3"}}},
    ]});
    let path = format!("/resourceGroups/g{DEPLOYMENT}");
    let refused = azure.put(&path, &json!({"properties": {"mode": "Incremental", "template": template}}));
    assert_eq!((refused.status, refused.code()), (400, "InvalidTemplateDeployment"));
    assert_eq!(refused.body["error"]["details"][0]["code"], "QuotaExceeded");
    azure.pass(60);
    assert_eq!(azure.stand_in.leftovers().len(), 1, "only the group");
}

#[test]
fn what_is_not_supported_is_refused() {
    let Some(azure) = Azure::start(prompt()) else { return };
    for (resource, reason) in [
        (
            json!({"type": "Microsoft.Resources/resourceGroups", "name": "[uniqueString('a')]"}),
            "uniquestring",
        ),
        (json!({"type": "Microsoft.Quantum/workspaces", "name": "w"}), "Microsoft.Quantum/workspaces"),
        (json!({"type": "Microsoft.Resources/resourceGroups", "name": "g", "copy": {}}), "copy"),
        (
            json!({"type": "Microsoft.Resources/resourceGroups", "name": "[parameters('p')]"}),
            "no parameters 'p'",
        ),
    ] {
        let refused = azure.put(DEPLOYMENT, &in_subscription(&json!([resource])));
        assert_eq!((refused.status, refused.code()), (400, "InvalidTemplate"), "{resource}");
        assert!(refused.body["error"]["message"].as_str().unwrap().contains(reason), "{}", refused.body);
    }
    let mut outer = nested("n", "g", &json!({"resources": []}));
    outer["properties"]["expressionEvaluationOptions"] = json!({});
    let created = azure.put(DEPLOYMENT, &in_subscription(&json!([group("g"), outer])));
    assert_eq!(azure.wait(&created).body["status"], "Failed");
}
