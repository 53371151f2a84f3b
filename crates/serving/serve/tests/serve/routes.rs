//! Routes, formats and errors.

use cudock_server::ApiKeys;
use serde_json::{Value, json};

use crate::support::{TestServer, eventually};

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn both_protocols_run_the_model() {
    let server = TestServer::start(|_| {});
    let predicted = server.send("POST", "/predict/double/1", "", r#"{"input": [[1, 2], [3, 4]]}"#);
    assert_eq!(predicted.status, 200, "{}", predicted.text);
    assert_eq!(predicted.json()["prediction"], json!([[2.0, 4.0], [6.0, 8.0]]));
    let body =
        json!({"id": "7", "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]});
    let inferred = server.send("POST", "/v2/models/double/infer", "", &body.to_string()).json();
    assert_eq!((&inferred["id"], &inferred["outputs"][0]["data"]), (&json!("7"), &json!([2.0, 4.0])));
}

#[test]
fn the_server_and_its_models_are_described() {
    let server = TestServer::start(|_| {});
    let metadata = server.get("/v2").json();
    assert_eq!(
        (keys(&metadata), &metadata["name"]),
        (vec!["extensions", "name", "version"], &json!("cudock"))
    );
    let tensor = |name| json!({"name": name, "datatype": "FP32", "shape": [-1, 2]});
    assert_eq!(
        server.get("/v2/models/double").json(),
        json!({"name": "double", "versions": ["1"], "platform": "onnxruntime_onnx",
               "inputs": [tensor("x")], "outputs": [tensor("y")]})
    );
    let config = server.get("/v2/models/double/config").json();
    assert_eq!(config["input"], json!([{"name": "x", "data_type": "TYPE_FP32", "dims": [2]}]));
    let index = server.send("POST", "/v2/repository/index", "", "");
    assert_eq!(index.json(), json!([{"name": "double", "version": "1", "state": "READY", "reason": ""}]));
}

#[test]
fn statistics_have_the_fields_of_triton() {
    let server = TestServer::start(|_| {});
    server.send("POST", "/predict", "", r#"{"input": [[1, 2], [3, 4]]}"#);
    eventually("the request is counted", || server.metric("cudock_requests_total") == 1);
    let statistics = server.get("/v2/models/stats").json();
    let model = &statistics["model_stats"][0];
    assert_eq!(
        keys(model),
        ["batch_stats", "execution_count", "inference_count", "inference_stats", "name", "version"]
    );
    assert_eq!((&model["inference_count"], &model["execution_count"]), (&json!(2), &json!(1)));
    let stages = &model["inference_stats"];
    assert_eq!(keys(stages), ["compute_infer", "fail", "queue", "success"]);
    let total = |stage: &str| stages[stage]["ns"].as_u64().unwrap();
    assert_eq!(total("success"), total("queue") + total("compute_infer"));
    assert_eq!(stages["fail"], json!({"count": 0, "ns": 0}));
    let batch = &model["batch_stats"][0];
    assert_eq!((keys(batch), &batch["batch_size"]), (vec!["batch_size", "compute_infer"], &json!(2)));
}

#[test]
fn errors_have_a_status_a_message_and_their_headers() {
    let server = TestServer::start(|_| {});
    for (method, path, headers, body, status, message) in [
        ("GET", "/nothing", "", "", 404, "not found: /nothing"),
        ("POST", "/predict/doubel", "", "{}", 404, "did you mean `double`?"),
        ("GET", "/v2/models/double/versions/9", "", "", 404, "version `9` of model `double` not found"),
        ("GET", "/predict", "", "", 405, "supports POST"),
        ("POST", "/predict", "", "{", 400, ""),
        ("POST", "/predict", "content-type: text/csv\r\n", "1,2", 415, "unsupported content-type `text/csv`"),
        ("POST", "/predict", "accept: text/csv\r\n", "{}", 406, "cannot respond with `text/csv`"),
        ("POST", "/v2/repository/index", "", "[", 400, "the body is not an index request"),
        ("POST", "/v2/repository/models/double/load", "", "[", 400, "the body is not a load request"),
    ] {
        let response = server.send(method, path, headers, body);
        assert_eq!(response.status, status, "{method} {path}: {}", response.text);
        let error = response.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(message), "{method} {path}: {error}");
    }
    assert_eq!(server.get("/predict").header("allow"), Some("POST"));
}

#[test]
fn only_probes_and_the_page_need_no_key() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let key = format!("key-{:x}", std::process::id());
    std::fs::write(file.path(), &key).unwrap();
    let server =
        TestServer::start(|settings| settings.server.keys = ApiKeys::from_file(file.path()).unwrap());
    for path in ["/ready", "/live", "/v2/health/ready", "/"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    for path in ["/health", "/metrics", "/status", "/v2", "/v2/models/double"] {
        let denied = server.get(path);
        assert_eq!((denied.status, denied.header("www-authenticate")), (401, Some("Bearer")), "{path}");
        assert_eq!(server.send("GET", path, &format!("x-api-key: {key}\r\n"), "").status, 200, "{path}");
    }
}

#[test]
fn the_page_is_served_with_a_policy_that_allows_nothing_foreign() {
    let server = TestServer::start(|_| {});
    let page = server.get("/");
    let policy = page.header("content-security-policy").unwrap();
    let mut rules = policy.split(';').map(|rule| rule.trim().split_once(' ').unwrap());
    assert_eq!(rules.next(), Some(("default-src", "'none'")));
    assert!(rules.all(|(_, from)| ["'self'", "'none'"].contains(&from)), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn a_version_added_to_the_directory_is_served_after_a_load_request() {
    let server = TestServer::start(|_| {});
    std::fs::create_dir(server.models.path().join("double/2")).unwrap();
    std::fs::write(server.models.path().join("double/2/model.onnx"), "newer").unwrap();
    assert_eq!(server.get("/v2/models/double/versions/2/ready").status, 404);
    assert_eq!(server.send("POST", "/v2/repository/models/double/load", "", "").status, 200);
    assert_eq!(server.get("/v2/models/double/versions/2/ready").status, 200);
    assert_eq!(server.get("/v2/models/double").json()["versions"], json!(["1", "2"]));
}
