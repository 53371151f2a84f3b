//! ARM templates: the resources in them are the bodies of the requests.

use std::collections::BTreeMap;

use cudock_azure::{Deployment, ExportFormat};
use serde_json::{Map, Value, json};

use super::{SECRETS, deployments, exported, file};

/// The resources of an exported template by id: those of the subscription, and those in its deployments to groups. Literals
/// are unescaped and parameters replaced.
fn resources(template: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for resource in template["resources"].as_array().unwrap() {
        match resource["resourceGroup"].as_str() {
            None => found.push((id(None, resource), evaluated(resource))),
            Some(group) => {
                let inner = resource["properties"]["template"]["resources"].as_array().unwrap();
                found.extend(inner.iter().map(|resource| (id(Some(group), resource), evaluated(resource))));
            }
        }
    }
    found
}

/// The id of a resource: each part of the name follows its part of the type.
fn id(group: Option<&str>, resource: &Value) -> String {
    let kinds: Vec<&str> = resource["type"].as_str().unwrap().split('/').collect();
    let names = resource["name"].as_str().unwrap().split('/');
    let pairs: String = kinds[1..].iter().zip(names).map(|(kind, name)| format!("/{kind}/{name}")).collect();
    let group = group.map(|group| format!("/resourceGroups/{group}")).unwrap_or_default();
    let subscription = "/subscriptions/00000000-0000-0000-0000-000000000001";
    format!("{subscription}{group}/providers/{}{pairs}", kinds[0]).to_lowercase()
}

fn evaluated(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(text_of(text)),
        Value::Array(items) => items.iter().map(evaluated).collect(),
        Value::Object(members) => {
            let member = |(key, member): (&String, &Value)| {
                // The template of the first request has expressions of its own.
                (key.clone(), if key == "template" { member.clone() } else { evaluated(member) })
            };
            Value::Object(members.iter().map(member).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn text_of(text: &str) -> String {
    let Some(inner) = text.strip_prefix('[').filter(|inner| inner.ends_with(']')) else {
        return text.to_owned();
    };
    if inner.starts_with('[') {
        return inner.to_owned();
    }
    let name = inner.strip_prefix("parameters('").and_then(|rest| rest.strip_suffix("')]"));
    let secret = name.and_then(|name| SECRETS.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)));
    secret.map_or_else(|| text.to_owned(), |(_, secret)| (*secret).to_owned())
}

/// The requests that a template replaces: those before the first that is not a resource.
pub(super) fn requests(deployment: &Deployment) -> BTreeMap<String, (String, Value)> {
    let mut requests = BTreeMap::new();
    for step in &deployment.steps {
        let (id, version) = step.call.path.split_once("?api-version=").unwrap();
        let is_first = !requests.contains_key(&id.to_lowercase());
        if step.call.method.as_str() != "PUT" || step.call.plane != cudock_azure::Plane::ResourceManager || !is_first {
            break;
        }
        let body = step.call.body.as_ref().unwrap().expose();
        requests.insert(id.to_lowercase(), (version.to_owned(), body));
    }
    requests
}

#[test]
fn a_template_has_the_bodies_of_the_requests() {
    for (name, deployment) in deployments() {
        let files = exported(&deployment, ExportFormat::Arm);
        let template: Value = serde_json::from_str(file(&files, "main.json")).unwrap();
        let requests = requests(&deployment);
        let resources = resources(&template);
        assert!(!requests.is_empty() && resources.len() == requests.len(), "{name}: {resources:#?}");
        for (id, body) in resources {
            let (version, expected) = requests.get(&id).unwrap_or_else(|| panic!("{name}: no request for {id}"));
            let mut body = body.as_object().unwrap().clone();
            assert_eq!(body.remove("apiVersion").unwrap(), version.as_str(), "{name}: {id}");
            for key in ["type", "name", "dependsOn"] {
                body.remove(key);
            }
            if let Some(Value::Object(properties)) = body.get_mut("properties")
                && properties.contains_key("template")
            {
                assert_eq!(properties.remove("expressionEvaluationOptions").unwrap(), json!({"scope": "inner"}));
            }
            assert_eq!(&Value::Object(body), expected, "{name}: {id}");
        }
        let has_rest = deployment.steps.len() > requests.len();
        assert_eq!(files.iter().any(|(file, _)| file == "finish.sh"), has_rest, "{name}");
    }
}

#[test]
fn each_resource_of_a_template_waits_for_the_previous_one() {
    for (name, deployment) in deployments() {
        let files = exported(&deployment, ExportFormat::Arm);
        let template: Value = serde_json::from_str(file(&files, "main.json")).unwrap();
        let outer = template["resources"].as_array().unwrap();
        let groups = outer.iter().filter(|resource| resource["resourceGroup"].is_string());
        let inner = groups.map(|group| group["properties"]["template"]["resources"].as_array().unwrap());
        for resources in std::iter::once(outer).chain(inner) {
            for (resource, index) in resources.iter().zip(0..) {
                let dependency = resource["dependsOn"][0].as_str();
                assert_eq!(dependency.is_some_and(|id| id.starts_with("/subscriptions/")), index > 0, "{name}");
            }
        }
    }
}
