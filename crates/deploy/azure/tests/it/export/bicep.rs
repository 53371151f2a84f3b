//! Bicep: what its files declare is what the ARM template declares.

use std::collections::BTreeMap;

use cudock_azure::ExportFormat;
use serde_json::{Map, Value, json};

use super::reader::{Declaration, Language, read};
use super::{deployments, exported, file};

/// A template's value as the reader of Bicep returns it.
fn expected(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
            Some(inner) if inner.starts_with('[') => Value::from(&text[1..]),
            Some(expression) => {
                let names = expression.split("parameters('").collect::<Vec<_>>();
                let (first, rest) = names.split_first().unwrap();
                let rest = rest.iter().map(|part| part.replacen("')", "", 1)).collect::<String>();
                json!({"$": format!("{first}{rest}").replace(' ', "")})
            }
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(expected).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(key, member)| (key.clone(), expected(member))).collect::<Map<_, _>>(),
        ),
        other => other.clone(),
    }
}

/// Compares a file with a template, and the files of its modules with the nested templates.
fn compare(files: &[(String, String)], name: &str, template: &Value, in_group: bool, compared: &mut usize) {
    let declarations = read(file(files, name), Language::Bicep);
    let has_scope = declarations.iter().any(|declaration| declaration.tokens == ["targetScope"]);
    assert_ne!(has_scope, in_group, "{name}");
    let of = |word: &str| -> Vec<&Declaration> {
        declarations
            .iter()
            .filter(|declaration| declaration.tokens.first().is_some_and(|own| own == word))
            .collect()
    };
    let parameters: BTreeMap<&str, bool> = declarations
        .iter()
        .enumerate()
        .filter(|(_, declaration)| declaration.tokens.first().is_some_and(|word| word == "param"))
        .map(|(at, declaration)| {
            let is_secure = at > 0 && declarations[at - 1].tokens == ["@secure()"];
            (declaration.tokens[1].as_str(), is_secure)
        })
        .collect();
    let declared = template["parameters"].as_object().into_iter().flatten();
    let declared: BTreeMap<&str, bool> = declared
        .map(|(name, parameter)| {
            (name.as_str(), parameter["type"].as_str().unwrap().to_lowercase() == "securestring")
        })
        .collect();
    assert_eq!(parameters, declared, "{name}");
    let mut written = declarations.iter().filter(|declaration| {
        let is_resource =
            ["resource", "module"].contains(&declaration.tokens.first().map_or("", String::as_str));
        is_resource && declaration.tokens.last().is_none_or(|word| word != "existing")
    });
    let mut symbols: Vec<(String, &Value)> = Vec::new();
    for resource in template["resources"].as_array().unwrap() {
        let declaration = written.next().unwrap_or_else(|| panic!("{name}: no declaration for {resource:#}"));
        let mut body = declaration.value.as_object().unwrap().clone();
        let dependencies = body.remove("dependsOn").unwrap_or_else(|| json!([]));
        let named: Vec<&str> = dependencies
            .as_array()
            .unwrap()
            .iter()
            .map(|dependency| {
                let symbol = dependency["$"].as_str().unwrap();
                let (_, earlier) = symbols.iter().find(|(own, _)| own == symbol).unwrap();
                earlier["name"].as_str().unwrap()
            })
            .collect();
        let ids = resource["dependsOn"].as_array().into_iter().flatten();
        let ids: Vec<&str> = ids.map(|id| id.as_str().unwrap().rsplit('/').next().unwrap()).collect();
        let named: Vec<&str> = named.iter().map(|name| name.rsplit('/').next().unwrap()).collect();
        assert_eq!(named, ids, "{name}: dependencies of {}", resource["name"]);
        symbols.push((declaration.tokens[1].clone(), resource));
        *compared += 1;
        if declaration.tokens[0] == "module" {
            let nested = &resource["properties"]["template"];
            assert_eq!(body["name"], expected(&resource["name"]));
            let group = resource["resourceGroup"]
                .as_str()
                .map(|group| json!({"$": format!("resourceGroup('{group}')")}));
            assert_eq!(body.get("scope"), group.as_ref(), "{name}");
            let arguments = resource["properties"]["parameters"].as_object().into_iter().flatten();
            let arguments: Map<String, Value> =
                arguments.map(|(name, argument)| (name.clone(), expected(&argument["value"]))).collect();
            let written = body.get("params").cloned().unwrap_or_else(|| json!({}));
            assert_eq!(written, Value::Object(arguments), "{name}");
            compare(files, &declaration.tokens[2], nested, in_group || group.is_some(), compared);
            continue;
        }
        let kind =
            format!("{}@{}", resource["type"].as_str().unwrap(), resource["apiVersion"].as_str().unwrap());
        assert_eq!(declaration.tokens[2], kind);
        let mut whole = resource.as_object().unwrap().clone();
        for key in ["type", "apiVersion", "dependsOn"] {
            whole.remove(key);
        }
        if let Some(scope) = whole.remove("scope") {
            let symbol = body.remove("scope").unwrap();
            let existing =
                of("resource").into_iter().find(|own| symbol["$"] == own.tokens[1].as_str()).unwrap();
            let kind = existing.tokens[2].split('@').next().unwrap();
            assert_eq!(
                format!("{kind}/{}", existing.value["name"].as_str().unwrap()),
                scope.as_str().unwrap()
            );
        }
        assert_eq!(Value::Object(body), expected(&Value::Object(whole)), "{name}");
    }
    assert!(written.next().is_none(), "{name}: more than the template");
    let outputs: Vec<&str> = of("output").iter().map(|output| output.tokens[1].as_str()).collect();
    let declared: Vec<&String> = template["outputs"].as_object().into_iter().flat_map(Map::keys).collect();
    assert_eq!(outputs, declared, "{name}");
}

#[test]
fn bicep_declares_what_the_template_declares() {
    for (name, deployment) in deployments() {
        let arm = exported(&deployment, ExportFormat::Arm);
        let template: Value = serde_json::from_str(file(&arm, "main.json")).unwrap();
        let files = exported(&deployment, ExportFormat::Bicep);
        let mut compared = 0;
        compare(&files, "main.bicep", &template, false, &mut compared);
        // Both groups, the reaper and its two rights are always there.
        assert!(compared > 5, "{name}: {compared}");
        assert_eq!(files[0].0, "main.bicep");
    }
}
