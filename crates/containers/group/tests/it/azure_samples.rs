//! Azure's own samples and tables, where they are at hand; they are not part of this repository.

use std::fs;
use std::path::Path;

use cudock_testkit::require_azure_specs;
use serde_json::{Map, Value, json};

fn load(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Bodies of requests and answers in the samples of an api-version.
fn bodies(directory: &Path) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let sample = load(&path);
        let request = sample.pointer("/parameters/containerGroup").cloned();
        let answers =
            sample["responses"].as_object().into_iter().flatten().filter_map(|(status, answer)| {
                Some((format!("{file} {status}"), answer.get("body")?.clone()))
            });
        let all = request.into_iter().map(|body| (file.clone(), body)).chain(answers);
        found.extend(all.filter(|(_, body)| body.pointer("/properties/containers").is_some()));
    }
    found
}

#[test]
fn every_sample_of_every_api_version_is_read() {
    let Some(specs) = require_azure_specs() else { return };
    let stable = specs.join("openapi/containerinstance/resource-manager/Microsoft.ContainerInstance/stable");
    for (version, at_least) in [("2021-09-01", 4), ("2023-05-01", 10)] {
        let bodies = bodies(&stable.join(version).join("examples"));
        assert!(bodies.len() >= at_least, "{version}: only {}", bodies.len());
        for (name, mut body) in bodies {
            let object = body.as_object_mut().unwrap();
            object.entry("name").or_insert_with(|| json!("demo1"));
            object.insert("apiVersion".to_owned(), json!(version));
            let text = serde_json::to_string_pretty(&body).unwrap();
            match cudock_group::read(&text) {
                Ok(reading) => {
                    let containers = body["properties"]["containers"].as_array().unwrap();
                    assert_eq!(reading.group.containers.len(), containers.len(), "{version} {name}");
                }
                Err(error) => panic!("{version} {name}:\n{error}\n{text}"),
            }
        }
    }
}

/// A value for a type of the newest table, with every property there is. Read-only ones too: exports have them.
fn filled(types: &[Value], reference: &Value) -> Value {
    let index: usize = reference["$ref"].as_str().unwrap().rsplit('/').next().unwrap().parse().unwrap();
    let kind = &types[index];
    match kind["$type"].as_str().unwrap() {
        "ObjectType" => {
            let properties = kind["properties"].as_object().into_iter().flatten();
            let mut object: Map<String, Value> =
                properties.map(|(name, property)| (name.clone(), filled(types, &property["type"]))).collect();
            if let Some(any) = kind.get("additionalProperties") {
                object.insert("any-key".to_owned(), filled(types, any));
            }
            Value::Object(object)
        }
        "ArrayType" => json!([filled(types, &kind["itemType"])]),
        "UnionType" => filled(types, &kind["elements"][0]),
        "StringLiteralType" => kind["value"].clone(),
        "BooleanType" => json!(false),
        "IntegerType" => json!(1),
        "AnyType" => json!({}),
        _ => json!("c29tZQ=="),
    }
}

#[test]
fn every_property_of_the_newest_api_version_is_known() {
    let Some(specs) = require_azure_specs() else { return };
    let table = load(&specs.join("bicep-types/microsoft.containerinstance/2026-07-01/types.json"));
    let types = table.as_array().unwrap();
    let resource = types
        .iter()
        .find(|kind| {
            kind["name"]
                .as_str()
                .is_some_and(|name| name == "Microsoft.ContainerInstance/containerGroups@2026-07-01")
        })
        .unwrap();
    let text = serde_json::to_string_pretty(&filled(types, &resource["body"])).unwrap();
    // With everything at once much is wrong (a probe that asks twice), but no key is unknown and no value of the
    // wrong type.
    let error = cudock_group::read(&text).unwrap_err();
    let any = |part: &str| error.faults.iter().any(|fault| fault.message.contains(part));
    assert!(!any("unknown key") && !any("` should be "), "{error}\n{text}");
    assert!(any("a probe with both") && any("of several kinds"), "{error}");
}

/// The properties that an api-version requires are missed when they are left out.
#[test]
fn what_azure_requires_of_a_container_is_required_here() {
    let Some(specs) = require_azure_specs() else { return };
    let swagger = load(&specs.join(
        "openapi/containerinstance/resource-manager/Microsoft.ContainerInstance/stable/2023-05-01/containerInstance.json",
    ));
    let required = |name: &str| -> Vec<String> {
        let list = swagger["definitions"][name]["required"].as_array().unwrap();
        list.iter().map(|key| key.as_str().unwrap().to_owned()).collect()
    };
    let group = |container: Value| json!({"name": "g", "properties": {"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}});
    let whole = json!({
        "name": "c",
        "properties": {
            "image": "i",
            "resources": {"requests": {"cpu": 1, "memoryInGB": 1, "gpu": {"count": 1, "sku": "V100"}}},
            "ports": [{"port": 1}],
            "environmentVariables": [{"name": "n"}],
            "volumeMounts": [{"name": "v", "mountPath": "/m"}],
            "livenessProbe": {"httpGet": {"port": 1}},
        }
    });
    cudock_group::read(&group(whole.clone()).to_string()).unwrap();
    let places = [
        ("Container", ""),
        ("ResourceRequests", "/properties/resources/requests"),
        ("GpuResource", "/properties/resources/requests/gpu"),
        ("ContainerPort", "/properties/ports/0"),
        ("EnvironmentVariable", "/properties/environmentVariables/0"),
        ("VolumeMount", "/properties/volumeMounts/0"),
        ("ContainerHttpGet", "/properties/livenessProbe/httpGet"),
    ];
    for (definition, pointer) in places {
        for key in required(definition) {
            let mut container = whole.clone();
            container.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(&key).unwrap();
            let error = cudock_group::read(&group(container).to_string()).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(&format!("add `{key}:`")), "{definition}.{key}: {message}");
        }
    }
}
