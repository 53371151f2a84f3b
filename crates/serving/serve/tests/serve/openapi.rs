//! The description of the server.

use std::io::Write;
use std::process::{Command, Stdio};

use cudock_project::Dialect;
use cudock_serve::Dialects;
use serde_json::{Value, json};

use crate::support::TestServer;

fn serve(dialects: &[Dialect]) -> TestServer {
    TestServer::start(|settings| settings.dialects = Dialects::new(dialects.to_vec()))
}

#[test]
fn models_are_described_by_their_signatures() {
    let document = serve(&[]).get("/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    let row = |kind: Value| json!({"type": "array", "items": {"type": kind}, "minItems": 2, "maxItems": 2});
    let rows = |kind: Value| json!({"anyOf": [{"type": "array", "items": row(kind.clone())}, row(kind)]});
    for path in ["/predict", "/predict/double"] {
        let post = &document["paths"][path]["post"];
        let request = &post["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(request["properties"]["input"], rows(json!("number")), "{path}");
        assert_eq!(request["properties"]["outputs"]["items"]["enum"], json!(["y"]), "{path}");
        let result = &post["responses"]["200"]["content"]["application/json"]["schema"];
        assert_eq!(result["properties"]["prediction"], rows(json!(["number", "null"])), "{path}");
    }
    assert_eq!(document["paths"]["/v2/models/double/infer"]["post"]["operationId"], "infer_double");
    assert_eq!((&document["security"], &document["paths"]["/ping"]), (&json!([]), &Value::Null));
}

#[test]
fn a_path_that_another_api_takes_is_described_as_its_own() {
    let document = serve(&[Dialect::Vertex, Dialect::TorchServe]).get("/openapi.json").json();
    let post = &document["paths"]["/predict"]["post"];
    assert_eq!(post["summary"], "As Vertex AI answers it.");
    let request = &post["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(request["anyOf"][0]["required"], json!(["instances"]));
    let parameters = &document["paths"]["/predictions/{model}/{version}"]["parameters"];
    assert_eq!((&parameters[0]["name"], &parameters[1]["name"]), (&json!("model"), &json!("version")));
}

#[test]
fn the_description_is_valid() {
    let Some(python) = cudock_testkit::require_openapi_validator() else { return };
    let all = [
        Dialect::TorchServe,
        Dialect::SageMaker,
        Dialect::Vertex,
        Dialect::AzureMl,
        Dialect::KServeV1,
        Dialect::TensorFlowServing,
        Dialect::Flask,
    ];
    for dialects in [&[][..], &all] {
        let document = serve(dialects).get("/openapi.json").text;
        let check = "import json, sys, openapi_spec_validator as v; v.validate(json.load(sys.stdin))";
        let mut child = Command::new(&python)
            .args(["-c", check])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
