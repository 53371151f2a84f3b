//! Templates of the resource manager: several resources in one request, in an order that Azure keeps.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::services::bodies::names::Tags;
use crate::services::bodies::request::Identity;

/// The api-version of deployments and groups.
pub(crate) const RESOURCES: &str = "2021-04-01";
pub(crate) const AUTHORIZATION: &str = "2022-04-01";

const IN_GROUP: &str = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#";
const IN_SUBSCRIPTION: &str =
    "https://schema.management.azure.com/schemas/2018-05-01/subscriptionDeploymentTemplate.json#";

/// The body of a deployment's PUT.
#[derive(Debug, Serialize)]
pub(crate) struct TemplateDeployment {
    /// The region that keeps the record; for subscriptions only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) location: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<Tags>,
    pub(crate) properties: TemplateProperties,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateProperties {
    /// `Complete` would delete what the template does not name.
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expression_evaluation_options: Option<Evaluation>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'static str, ParameterValue>,
    template: Template,
}

#[derive(Debug, Serialize)]
struct Evaluation {
    scope: &'static str,
}

#[derive(Debug, Serialize)]
struct ParameterValue {
    value: String,
}

impl TemplateProperties {
    pub(crate) fn new(template: Template) -> Self {
        Self {
            mode: "Incremental",
            expression_evaluation_options: None,
            parameters: BTreeMap::new(),
            template,
        }
    }

    /// The body for a template within another one, whose expressions mean its own scope.
    pub(crate) fn nested(template: Template) -> Self {
        Self { expression_evaluation_options: Some(Evaluation { scope: "inner" }), ..Self::new(template) }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.parameters.insert(name, ParameterValue { value });
        self
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Template {
    #[serde(rename = "$schema")]
    schema: &'static str,
    content_version: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'static str, Declared>,
    resources: Vec<Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    outputs: BTreeMap<&'static str, Output>,
}

#[derive(Debug, Serialize)]
struct Declared {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Debug, Serialize)]
struct Output {
    #[serde(rename = "type")]
    kind: &'static str,
    value: String,
}

impl Template {
    pub(crate) fn in_group(resources: Vec<Value>) -> Self {
        Self {
            schema: IN_GROUP,
            content_version: "1.0.0.0",
            parameters: BTreeMap::new(),
            resources,
            outputs: BTreeMap::new(),
        }
    }

    pub(crate) fn in_subscription(resources: Vec<Value>) -> Self {
        Self { schema: IN_SUBSCRIPTION, ..Self::in_group(resources) }
    }

    /// Declares a parameter: `string`, or `securestring`, which Azure does not show again.
    #[must_use]
    pub(crate) fn parameter(mut self, name: &'static str, kind: &'static str) -> Self {
        self.parameters.insert(name, Declared { kind });
        self
    }

    #[must_use]
    pub(crate) fn output(mut self, name: &'static str, value: String) -> Self {
        self.outputs.insert(name, Output { kind: "string", value });
        self
    }
}

/// A resource within a template.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateResource<P> {
    #[serde(rename = "type")]
    kind: &'static str,
    api_version: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    /// The group of a nested deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_group: Option<String>,
    /// The resource that a role assignment is for, if that is not the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Tags>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sku: Option<TemplateSku>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<String>,
    properties: P,
}

#[derive(Debug, Serialize)]
struct TemplateSku {
    name: &'static str,
}

impl<P> TemplateResource<P> {
    pub(crate) fn new(
        kind: &'static str,
        api_version: &'static str,
        name: impl Into<String>,
        properties: P,
    ) -> Self {
        Self {
            kind,
            api_version,
            name: name.into(),
            location: None,
            resource_group: None,
            scope: None,
            tags: None,
            identity: None,
            sku: None,
            depends_on: Vec::new(),
            properties,
        }
    }

    #[must_use]
    pub(crate) fn at(mut self, location: &str, tags: &Tags) -> Self {
        self.location = Some(location.to_owned());
        self.tags = Some(tags.clone());
        self
    }

    #[must_use]
    pub(crate) fn in_group(mut self, group: impl Into<String>) -> Self {
        self.resource_group = Some(group.into());
        self
    }

    #[must_use]
    pub(crate) fn scoped(mut self, scope: Option<String>) -> Self {
        self.scope = scope;
        self
    }

    #[must_use]
    pub(crate) fn identity(mut self, identity: Option<Identity>) -> Self {
        self.identity = identity;
        self
    }

    #[must_use]
    pub(crate) fn sku(mut self, name: &'static str) -> Self {
        self.sku = Some(TemplateSku { name });
        self
    }

    #[must_use]
    pub(crate) fn after(mut self, ids: impl IntoIterator<Item = String>) -> Self {
        self.depends_on.extend(ids);
        self
    }
}

/// The rights of an identity.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoleAssignment {
    role_definition_id: String,
    principal_id: String,
    principal_type: &'static str,
    description: &'static str,
}

impl RoleAssignment {
    /// Sets the type of the principal, without which Azure does not find an identity that is
    /// seconds old.
    pub(crate) fn new(role_definition_id: String, principal_id: String, description: &'static str) -> Self {
        Self { role_definition_id, principal_id, principal_type: "ServicePrincipal", description }
    }

    pub(crate) fn resource(self, name: String) -> TemplateResource<Self> {
        TemplateResource::new("Microsoft.Authorization/roleAssignments", AUTHORIZATION, name, self)
    }
}
