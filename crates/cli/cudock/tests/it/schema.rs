//! `cudock schema` as a user types it.

use crate::support::schema::{compile, names, schema};
use crate::support::{code, run, shown};

#[test]
fn the_list_names_every_schema() {
    insta::assert_snapshot!(shown(&run(&["schema"])));
}

#[test]
fn every_schema_is_valid_and_names_what_it_describes() {
    for name in names() {
        let schema = schema(&name);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        assert_eq!(schema["$id"], format!("urn:cudock:schema:1:{name}"));
        assert_eq!(schema["title"], name.as_str());
        assert!(schema["description"].is_string(), "{name}");
        compile(&name);
    }
}

#[test]
fn a_report_with_a_key_of_another_type_does_not_match_its_schema() {
    let (schemas, index) = compile("ps");
    let mut report = serde_json::json!({"schema": 1, "deployments": [], "containers": []});
    assert!(schemas.validate(&report, index).is_ok());
    report["added_later"] = true.into();
    assert!(schemas.validate(&report, index).is_ok(), "later versions may add keys");
    report["containers"] = "none".into();
    assert!(schemas.validate(&report, index).is_err());
}

#[test]
fn explained_plans_and_every_kind_of_fact_match_their_schemas() {
    let kinds: &[(&str, &[&str])] = &[
        ("gpu", &["T4"]),
        ("driver", &["535.161.08", "450"]),
        ("cuda", &["12.4", "12.4.1"]),
        ("image", &["12.4.1-cudnn-runtime-ubuntu22.04", "12.4.1-base-ubuntu22.04"]),
        ("torch", &["2.5.1"]),
        ("torchvision", &["0.20.1"]),
        ("tensorflow", &["2.17.0"]),
        ("onnxruntime", &["1.31.1"]),
        ("jax", &["0.11.0"]),
        ("tensorrt", &["10.13.2"]),
        ("package", &["cupy-cuda12x", "xgboost", "requests"]),
        ("size", &["Standard_NC4as_T4_v3", "--all", "--lifecycle"]),
        ("service", &["aci", "ml"]),
        ("storage", &["blob-hot"]),
    ];
    let mut calls = vec![
        vec!["plan", "--duration", "1h", "--gpu-memory", "1GB", "--why", "NC4as_T4_v3"],
        vec!["facts"],
        vec!["facts", "arch", "sm_90a"],
        vec!["facts", "arch", "compute_80"],
        vec!["facts", "size", "Standard_NC4as_T4_v3", "--prices"],
    ];
    for (kind, entries) in kinds {
        calls.push(vec!["facts", *kind]);
        calls.extend(entries.iter().map(|entry| vec!["facts", *kind, *entry]));
    }
    for call in calls {
        // The helper compares the report with its schema.
        let output = run(&[call.as_slice(), &["--format", "json"]].concat());
        assert_eq!(code(&output), 0, "{}", shown(&output));
    }
}

#[test]
fn an_unknown_name_is_a_bad_call_with_a_suggestion() {
    let output = run(&["schema", "cudock.tml"]);
    assert_eq!(code(&output), 2);
    insta::assert_snapshot!(shown(&output));
}
