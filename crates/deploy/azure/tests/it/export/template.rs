//! ARM templates: the resources in them are the bodies of the requests.

use cudock_azure::ExportFormat;
use serde_json::{Map, Value, json};

use crate::bodies::resource_faults;
use crate::schema::Documents;
use crate::specs;

use super::{Comparison, deployments, exported, file, requests};

/// The resources of an exported template by id: those of the subscription, and those in its deployments to groups.
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

/// Unescapes literals. The template of a deployment among the requests has expressions of its own.
fn evaluated(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("[[") && text.ends_with(']') => Value::from(&text[1..]),
        Value::Array(items) => items.iter().map(evaluated).collect(),
        Value::Object(members) => {
            let member = |(key, member): (&String, &Value)| {
                (
                    key.clone(),
                    if member.get("contentVersion").is_some() { member.clone() } else { evaluated(member) },
                )
            };
            Value::Object(members.iter().map(member).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn parameter(value: &Value) -> Option<String> {
    value.as_str()?.strip_prefix("[parameters('")?.strip_suffix("')]").map(str::to_owned)
}

#[test]
fn a_template_has_the_bodies_of_the_requests() {
    for (name, deployment) in deployments() {
        let files = exported(&deployment, ExportFormat::Arm);
        let template: Value = serde_json::from_str(file(&files, "main.json")).unwrap();
        let requests = requests(&deployment);
        let resources = resources(&template);
        assert!(!requests.is_empty() && resources.len() == requests.len(), "{name}: {resources:#?}");
        let mut comparison = Comparison::new(parameter);
        for (id, body) in resources {
            let (version, expected) =
                requests.get(&id).unwrap_or_else(|| panic!("{name}: no request for {id}"));
            let mut body = body.as_object().unwrap().clone();
            assert_eq!(body.remove("apiVersion").unwrap(), *version, "{name}: {id}");
            for key in ["type", "name", "dependsOn"] {
                body.remove(key);
            }
            if id.contains("/microsoft.resources/deployments/") {
                let options =
                    body["properties"].as_object_mut().unwrap().remove("expressionEvaluationOptions");
                assert_eq!(options, Some(json!({"scope": "inner"})), "{name}: {id}");
            }
            comparison.assert_same(&Value::Object(body), expected, &format!("{name}: {id}"));
        }
        let declared = template["parameters"].as_object().into_iter().flat_map(Map::keys);
        assert!(declared.eq(comparison.secrets.keys()), "{name}");
        let has_rest = deployment.steps.len() > requests.len();
        assert_eq!(files.iter().any(|(file, _)| file == "finish.sh"), has_rest, "{name}");
    }
}

#[test]
fn templates_validate_against_the_official_schemas() {
    let Some(root) = specs::specifications() else { return };
    let documents = Documents::new(root);
    let root = documents.schema("arm-schemas/2019-04-01/deploymentTemplate.json", "");
    let mut validated = 0;
    for (name, deployment) in deployments() {
        let files = exported(&deployment, ExportFormat::Arm);
        let template: Value = serde_json::from_str(file(&files, "main.json")).unwrap();
        let mut outer = template.clone();
        // The schema of a resource is a choice among all types there are, which are not all at hand.
        outer["resources"] = json!([]);
        assert_eq!(documents.faults(&root, &outer), Vec::<String>::new(), "{name}");
        for resource in template["resources"].as_array().unwrap() {
            let text = |key: &str| resource[key].as_str().unwrap();
            let faults = resource_faults(&documents, text("type"), text("name"), resource);
            assert_eq!(faults, Vec::<String>::new(), "{name}: {}", text("name"));
            validated += 1;
        }
    }
    assert!(validated >= 16, "{validated}");
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
                assert_eq!(
                    dependency.is_some_and(|id| id.starts_with("/subscriptions/")),
                    index > 0,
                    "{name}"
                );
            }
        }
    }
}
