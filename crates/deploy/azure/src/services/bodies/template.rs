//! Templates of the resource manager: several resources in one request, in an order that Azure keeps.

use serde_json::{Value, json};

use crate::services::bodies::names::Names;

/// The api-version of deployments and groups.
pub(crate) const RESOURCES: &str = "2021-04-01";
pub(crate) const AUTHORIZATION: &str = "2022-04-01";
pub(crate) const DEPLOYMENTS: &str = "Microsoft.Resources/deployments";

const IN_GROUP: &str = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#";
const IN_SUBSCRIPTION: &str =
    "https://schema.management.azure.com/schemas/2018-05-01/subscriptionDeploymentTemplate.json#";
/// `Complete` would delete what the template does not name.
const MODE: &str = "Incremental";

/// A template of resources in a group, with a parameter: its name and its type, which is `string`, or `securestring`,
/// which Azure does not show again.
pub(crate) fn template_in_group(
    resources: &[Value],
    parameter: Option<(&str, &str)>,
    outputs: Option<&Value>,
) -> Value {
    json!({
        "$schema": IN_GROUP,
        "contentVersion": "1.0.0.0",
        "parameters": parameter.map(|(name, kind)| json!({name: {"type": kind}})),
        "resources": resources,
        "outputs": outputs,
    })
}

/// The properties of a deployment of resources to the subscription.
pub(crate) fn in_subscription(resources: &[Value]) -> Value {
    let template = json!({"$schema": IN_SUBSCRIPTION, "contentVersion": "1.0.0.0", "resources": resources});
    json!({"mode": MODE, "template": template})
}

/// The properties of a deployment of a template, with the value of its parameter.
pub(crate) fn deployed(template: &Value, parameter: (&str, &str)) -> Value {
    json!({"mode": MODE, "parameters": value_of(parameter), "template": template})
}

/// A template within another one, whose expressions mean its own scope, as a resource of the other.
pub(crate) fn nested(
    name: &str,
    group: &str,
    template: &Value,
    parameter: Option<(&str, &str)>,
    after: &[String],
) -> Value {
    json!({
        "type": DEPLOYMENTS,
        "apiVersion": RESOURCES,
        "name": name,
        "resourceGroup": group,
        "dependsOn": after,
        "properties": {
            "mode": MODE,
            "expressionEvaluationOptions": {"scope": "inner"},
            "parameters": parameter.map(value_of),
            "template": template,
        },
    })
}

fn value_of((name, value): (&str, &str)) -> Value {
    json!({name: {"value": value}})
}

/// A role of an identity as a resource: for the group of the template, or for a resource in it.
#[derive(Debug)]
pub(crate) struct RoleAssignment<'a> {
    /// Distinguishes it from others of the run.
    pub(crate) purpose: &'a str,
    pub(crate) role: &'a str,
    pub(crate) principal: &'a str,
    pub(crate) scope: Option<String>,
    pub(crate) after: Option<String>,
    pub(crate) description: &'a str,
}

impl RoleAssignment<'_> {
    /// Sets the type of the principal, without which Azure does not find an identity that is seconds old.
    pub(crate) fn resource(&self, names: Names<'_>) -> Value {
        json!({
            "type": "Microsoft.Authorization/roleAssignments",
            "apiVersion": AUTHORIZATION,
            "name": names.uuid(self.purpose),
            "scope": self.scope,
            "dependsOn": self.after.as_ref().map(|after| [after]),
            "properties": {
                "roleDefinitionId": names.role_definition(self.role),
                "principalId": self.principal,
                "principalType": "ServicePrincipal",
                "description": self.description,
            },
        })
    }
}
