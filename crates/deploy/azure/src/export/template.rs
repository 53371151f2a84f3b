//! A deployment as an ARM template at the scope of the subscription.

use serde_json::{Map, Value, json};

use super::header::{DELETE_BY_SCRIPT, header};
use super::outline::{Outline, OutlineResource};
use crate::call::Body;
use crate::deployment::Deployment;

pub(super) const DEPLOYMENTS: &str = "Microsoft.Resources/deployments";
const DEPLOYMENTS_VERSION: &str = "2025-04-01";
const IN_GROUP: &str = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#";
const IN_SUBSCRIPTION: &str =
    "https://schema.management.azure.com/schemas/2018-05-01/subscriptionDeploymentTemplate.json#";

/// The template. Resources of a group are in a nested deployment, each after the previous one.
pub(super) fn template(deployment: &Deployment, outline: &Outline<'_>) -> Value {
    let about = "Create: az deployment sub create --location REGION --template-file main.json";
    let mut resources: Vec<Value> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    for block in outline.resources.chunk_by(|one, other| one.path.group == other.path.group) {
        let Some(group) = block.first().and_then(|first| first.path.group) else {
            for resource in block {
                resources.push(with_dependency(resource_json(resource), ids.last()));
                ids.push(resource.path.id.to_owned());
            }
            continue;
        };
        let (id, nested) = nested(deployment, block, group);
        resources.push(with_dependency(nested, ids.last()));
        ids.push(id);
    }
    let mut template = skeleton(IN_SUBSCRIPTION, resources, secrets_of(&outline.resources).into_iter());
    template.insert("metadata".to_owned(), metadata(deployment, about));
    Value::Object(template)
}

/// The place for comments in a template.
pub(super) fn metadata(deployment: &Deployment, about: &str) -> Value {
    json!({"comments": header(deployment, about, DELETE_BY_SCRIPT).join(" ")})
}

fn skeleton<'n>(
    schema: &str,
    resources: Vec<Value>,
    secrets: impl Iterator<Item = &'n str>,
) -> Map<String, Value> {
    let parameter = |name: &str| (name.to_owned(), json!({"type": "securestring"}));
    let parameters: Map<String, Value> = secrets.map(parameter).collect();
    let mut template = Map::new();
    template.insert("$schema".to_owned(), schema.into());
    template.insert("contentVersion".to_owned(), "1.0.0.0".into());
    template.insert("resources".to_owned(), Value::Array(resources));
    if !parameters.is_empty() {
        template.insert("parameters".to_owned(), Value::Object(parameters));
    }
    template
}

/// A deployment to a group, and its id.
fn nested(deployment: &Deployment, block: &[OutlineResource<'_>], group: &str) -> (String, Value) {
    let first = block.first();
    let step = first.map_or("resources", |resource| resource.step.id.as_str());
    // Names of deployments have up to 64 characters.
    let name: String = format!("cudock-{}-{step}", deployment.run_id).chars().take(64).collect();
    let subscription = first.map_or("", |resource| resource.path.subscription);
    let id = format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/{DEPLOYMENTS}/{name}");
    let before = std::iter::once(None).chain(block.iter().map(Some));
    let resources = block.iter().zip(before).map(|(resource, previous)| {
        with_dependency(resource_json(resource), previous.map(|previous| previous.path.id))
    });
    let secrets = secrets_of(block);
    let template = skeleton(IN_GROUP, resources.collect(), secrets.iter().copied());
    let argument = |name: &&str| ((*name).to_owned(), json!({"value": parameter(name)}));
    let mut properties = Map::new();
    properties.insert("mode".to_owned(), "Incremental".into());
    properties.insert("expressionEvaluationOptions".to_owned(), json!({"scope": "inner"}));
    properties.insert("template".to_owned(), Value::Object(template));
    if !secrets.is_empty() {
        properties.insert("parameters".to_owned(), Value::Object(secrets.iter().map(argument).collect()));
    }
    let nested = json!({
        "type": DEPLOYMENTS,
        "apiVersion": DEPLOYMENTS_VERSION,
        "name": name,
        "resourceGroup": group,
        "properties": properties,
    });
    (id, nested)
}

/// The names of the secrets that resources need.
pub(super) fn secrets_of<'b>(block: &'b [OutlineResource<'_>]) -> Vec<&'b str> {
    let mut names: Vec<&str> = block.iter().flat_map(|resource| resource.body.secrets()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn parameter(name: &str) -> String {
    format!("[parameters('{name}')]")
}

/// A resource with its body.
fn resource_json(resource: &OutlineResource<'_>) -> Value {
    let path = &resource.path;
    let mut json = resource.body.to_json(&literal, &parameter);
    if path.is_kind(DEPLOYMENTS) {
        // A deployment's own template keeps its expressions, which see nothing of the template around it.
        let body = resource.step.call.body.as_ref().map(Body::redacted);
        let template = body.and_then(|body| body.pointer("/properties/template"));
        if let (Some(template), Some(Value::Object(properties))) = (template, json.get_mut("properties")) {
            properties.insert("template".to_owned(), template.clone());
            properties.insert("expressionEvaluationOptions".to_owned(), json!({"scope": "inner"}));
        }
    }
    if let Value::Object(members) = &mut json {
        members.insert("type".to_owned(), path.kind.clone().into());
        members.insert("apiVersion".to_owned(), path.api_version.into());
        members.insert("name".to_owned(), path.name().into());
    }
    json
}

fn with_dependency(mut resource: Value, on: Option<impl Into<String>>) -> Value {
    if let (Value::Object(members), Some(on)) = (&mut resource, on) {
        members.insert("dependsOn".to_owned(), json!([on.into()]));
    }
    resource
}

/// A text that is not evaluated: those in brackets are expressions otherwise.
fn literal(text: &str) -> String {
    let is_expression = text.starts_with('[') && text.ends_with(']');
    if is_expression { format!("[{text}") } else { text.to_owned() }
}
