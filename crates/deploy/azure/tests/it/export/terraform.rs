//! Terraform: the attributes of its resources are the bodies of the requests.

use cudock_azure::ExportFormat;
use serde_json::{Map, Value, json};

use super::reader::{Declaration, Language, read};
use super::{Comparison, deployments, exported, file, requests};

fn variable(value: &Value) -> Option<String> {
    value["$"].as_str()?.strip_prefix("var.").map(str::to_owned)
}

fn resources(declarations: &[Declaration]) -> Vec<(&str, &Value)> {
    let resources = declarations.iter().filter(|declaration| declaration.tokens[0] == "resource");
    resources.map(|resource| (resource.tokens[2].as_str(), &resource.value)).collect()
}

#[test]
fn terraform_has_the_bodies_of_the_requests() {
    for (name, deployment) in deployments() {
        let files = exported(&deployment, ExportFormat::Terraform);
        let declarations = read(file(&files, "main.tf"), Language::Hcl);
        let provider = declarations.iter().find(|declaration| declaration.tokens == ["terraform"]).unwrap();
        assert_eq!(provider.value["required_providers"]["azapi"]["version"], "2.4.0");
        let resources = resources(&declarations);
        let (groups, resources): (Vec<_>, Vec<_>) = resources
            .into_iter()
            .partition(|(_, value)| value["type"].as_str().unwrap().contains("/resourceGroups@"));
        assert_eq!(groups.len(), 2, "{name}");
        let requests = requests(&deployment);
        assert_eq!(resources.len(), requests.len(), "{name}");
        let mut comparison = Comparison::new(variable);
        for (label, resource) in resources {
            let (kind, version) = resource["type"].as_str().unwrap().split_once('@').unwrap();
            let parent = resource["parent_id"].as_str().unwrap();
            let own = resource["name"].as_str().unwrap();
            let last = kind.rsplit('/').next().unwrap();
            let is_top = kind.matches('/').count() == 1;
            let id = if is_top {
                format!("{parent}/providers/{kind}/{own}")
            } else {
                format!("{parent}/{last}/{own}")
            };
            let request = requests.get(&id.to_lowercase());
            let (request_version, expected) =
                request.unwrap_or_else(|| panic!("{name}: no request for {id}"));
            assert_eq!(version, *request_version, "{name}: {id}");
            let mut body = resource["body"].clone();
            for key in ["location", "tags"] {
                if let Some(value) = resource.get(key) {
                    body[key] = value.clone();
                }
            }
            if let Some(identity) = resource.get("identity") {
                let ids = identity["identity_ids"].as_array().unwrap();
                let ids: Map<String, Value> =
                    ids.iter().map(|id| (id.as_str().unwrap().to_owned(), json!({}))).collect();
                body["identity"] = json!({"type": identity["type"]});
                if !ids.is_empty() {
                    body["identity"]["userAssignedIdentities"] = Value::Object(ids);
                }
            }
            comparison.assert_same(&body, expected, &format!("{name}: {label}"));
        }
        let variables = declarations.iter().filter(|declaration| declaration.tokens[0] == "variable");
        let mut variables: Vec<&String> = variables.map(|variable| &variable.tokens[1]).collect();
        variables.sort();
        assert!(variables.into_iter().eq(comparison.secrets.keys()), "{name}");
    }
}

#[test]
fn each_resource_of_terraform_waits_for_the_previous_one() {
    for (name, deployment) in deployments() {
        let files = exported(&deployment, ExportFormat::Terraform);
        let declarations = read(file(&files, "main.tf"), Language::Hcl);
        let mut previous: Option<&str> = None;
        for (label, resource) in resources(&declarations) {
            let dependency = resource["depends_on"][0]["$"].as_str();
            assert_eq!(
                dependency,
                previous.map(|label| format!("azapi_resource.{label}")).as_deref(),
                "{name}"
            );
            previous = Some(label);
        }
    }
}
