//! Web pages of other origins: what they change, whatever they request.

use std::process::Command;

use cudock_project::{Dialect, ServeOptions};
use cudock_serve::Dialects;
use serde_json::json;

use crate::support::{TestServer, eventually};

const FOREIGN: [&str; 3] = [
    "origin: https://evil.test\r\nsec-fetch-site: cross-site\r\n",
    "origin: http://localhost:1\r\nsec-fetch-site: same-site\r\n",
    "origin: https://evil.test\r\n",
];

const DIALECTS: [Dialect; 6] = [
    Dialect::TorchServe,
    Dialect::SageMaker,
    Dialect::AzureMl,
    Dialect::KServeV1,
    Dialect::TensorFlowServing,
    Dialect::Flask,
];

const CALLS: [&str; 13] = [
    "ServerLive",
    "ServerReady",
    "ServerMetadata",
    "ModelReady",
    "ModelMetadata",
    "ModelConfig",
    "ModelInfer",
    "ModelStreamInfer",
    "ModelStatistics",
    "RepositoryIndex",
    "RepositoryModelLoad",
    "RepositoryModelUnload",
    "NotYetInvented",
];

/// Which models are loaded, and how often that has changed.
fn state(server: &TestServer) -> Vec<String> {
    let page = server.get("/metrics").text;
    let names = ["cudock_model_loads_total", "cudock_model_unloads_total", "cudock_models_loaded"];
    let lines = page.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    assert!(lines.len() >= 3, "{page}");
    lines
}

/// Method and path of all routes that the server describes, and of those for gRPC, for the first of its models.
fn routes(server: &TestServer) -> Vec<(String, String)> {
    let document = server.get("/openapi.json").json();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path
            .replace("{model}", "a")
            .replace("{name}", "a")
            .replace("{version}", "1")
            .replace("{asset}", "style.css");
        assert!(!path.contains('{'), "unknown parameter in {path}");
        let methods = methods.as_object().unwrap().keys().filter(|method| *method != "parameters");
        routes.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
    }
    assert!(routes.len() > 30, "{routes:?}");
    // Those of the Open Inference Protocol that are not part of its description.
    let others = ["/predict", "/predict/a/1", "/v2/repository/index", "/v2/repository/models/a/load"];
    let unload = ["/v2/repository/models/a/unload", "/v2/models/a/versions/1/infer", "/not/yet/invented"];
    routes.extend(others.iter().chain(&unload).map(|path| ("POST".to_owned(), (*path).to_owned())));
    routes.extend(CALLS.map(|call| ("POST".to_owned(), format!("/inference.GRPCInferenceService/{call}"))));
    routes
}

/// Sends what a route may expect, as a foreign page does.
fn attack(server: &TestServer, method: &str, path: &str, foreign: &str) {
    let row = json!({"input": [[1, 2]]}).to_string();
    let kinds =
        if path.contains("GRPC") { ["application/grpc"; 2] } else { ["text/plain", "application/json"] };
    let name = [b"\0\0\0\0\x03\x0a\x01a".as_slice(), b"\0\0\0\0\x05\x12\x01a\x0a\0".as_slice()];
    let name = name.map(|message| String::from_utf8(message.to_vec()).unwrap());
    for kind in kinds {
        for body in ["", "{}", &row, &name[0], &name[1]] {
            server.send(method, path, &format!("content-type: {kind}\r\n{foreign}"), body);
        }
    }
}

#[test]
fn no_request_of_a_foreign_page_loads_or_unloads_a_model() {
    let idle = ServeOptions { idle_unload: Some("1h".parse().unwrap()), ..Default::default() };
    let on_demand = ServeOptions { on_demand: Some(true), ..ServeOptions::default() };
    for (options, is_loaded) in [(ServeOptions::default(), true), (on_demand, false), (idle, true)] {
        let server = TestServer::serve(&["a", "b"], options, |settings| {
            settings.dialects = Dialects::new(DIALECTS.to_vec());
        });
        assert_eq!(server.metric("cudock_models_loaded") == 2, is_loaded);
        let before = state(&server);
        for (method, path) in routes(&server) {
            for foreign in FOREIGN {
                attack(&server, &method, &path, foreign);
                assert_eq!(state(&server), before, "{method} {path} {foreign:?}");
            }
        }
        for action in ["unload", "load"] {
            let path = format!("/v2/repository/models/a/{action}");
            assert_eq!(server.send("POST", &path, "", "").status, 200, "other clients may");
        }
        assert_ne!(state(&server), before);
    }
}

#[test]
fn a_foreign_page_gets_predictions_of_models_that_are_loaded_but_no_permission_to_read_them() {
    let server = TestServer::start(|_| {});
    for foreign in FOREIGN {
        let response = server.send("POST", "/predict", foreign, r#"{"input": [[1, 2]]}"#);
        assert_eq!((response.status, response.header("access-control-allow-origin")), (200, None));
        let preflight = server.send("OPTIONS", "/predict", foreign, "");
        assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (405, None));
    }
}

#[test]
fn a_refusal_names_the_remedy_in_the_form_of_each_protocol() {
    let server = TestServer::serve(&["a"], ServeOptions::default(), |settings| {
        settings.server.allow_hosts = vec!["app.example".to_owned()];
    });
    let unload = "/v2/repository/models/a/unload";
    let refused = server.send("POST", unload, FOREIGN[0], "");
    assert_eq!(refused.status, 403);
    let error = refused.json()["error"].as_str().unwrap().to_owned();
    assert!(error.ends_with("start the server with `--allow-host evil.test`"), "{error}");
    if cudock_testkit::require_program("curl").is_some() {
        let url = format!("http://{}/inference.GRPCInferenceService/RepositoryModelUnload", server.address);
        let output = Command::new("curl")
            .args(["-sS", "--http2-prior-knowledge", "-D", "-", "-H", "content-type: application/grpc"])
            .args(["-H", "origin: https://evil.test", "--data", "", &url])
            .output()
            .unwrap();
        let head = String::from_utf8(output.stdout).unwrap();
        assert!(head.contains("grpc-status: 7") && head.contains("--allow-host evil.test"), "{head}");
    }
    let own = "origin: https://app.example\r\nsec-fetch-site: cross-site\r\n";
    assert_eq!(server.send("POST", unload, own, "").status, 200);
    eventually("it is unloaded", || server.metric("cudock_models_loaded") == 0);
}
