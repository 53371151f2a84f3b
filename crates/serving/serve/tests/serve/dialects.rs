//! Clients of other model servers: the requests and responses in their documentation.

use cudock_project::Dialect;
use cudock_serve::Dialects;
use cudock_server::ApiKeys;
use serde_json::{Value, json};

use crate::support::TestServer;

fn serve(dialects: &[Dialect]) -> TestServer {
    TestServer::start(|settings| settings.dialects = Dialects::new(dialects.to_vec()))
}

/// Sends requests to a server with that API, each of which has its response in JSON.
fn exchange(dialect: Dialect, requests: &[(&str, &str, &str, u16, Value)]) {
    let server = serve(&[dialect]);
    for (method, path, body, status, expected) in requests {
        let response = server.send(method, path, "", body);
        assert_eq!(response.status, *status, "{method} {path} {body}: {}", response.text);
        assert_eq!(response.json(), *expected, "{method} {path} {body}");
    }
}

#[test]
fn kserve_v1() {
    exchange(
        Dialect::KServeV1,
        &[
            ("GET", "/", "", 200, json!({"status": "alive"})),
            ("GET", "/v1/models", "", 200, json!({"models": ["double"]})),
            ("GET", "/v1/models/double", "", 200, json!({"name": "double", "ready": true})),
            (
                "POST",
                "/v1/models/double:predict",
                r#"{"instances": [[1, 2], [3, 4]]}"#,
                200,
                json!({"predictions": [[2.0, 4.0], [6.0, 8.0]]}),
            ),
            (
                "POST",
                "/v1/models/other:predict",
                r#"{"instances": [[1, 2]]}"#,
                404,
                json!({"error": "model `other` not found"}),
            ),
            (
                "POST",
                "/v1/models/double:predict",
                r#"{"rows": [[1, 2]]}"#,
                400,
                json!({"error": "`instances` is missing"}),
            ),
        ],
    );
}

#[test]
fn tensorflow_serving() {
    let tensor = |name: &str| {
        let size = |size: &str| json!({"size": size, "name": ""});
        let shape = json!({"dim": [size("-1"), size("2")], "unknown_rank": false});
        json!({"dtype": "DT_FLOAT", "tensor_shape": shape, "name": format!("{name}:0")})
    };
    exchange(
        Dialect::TensorFlowServing,
        &[
            (
                "GET",
                "/v1/models/double",
                "",
                200,
                json!({"model_version_status": [{
                    "version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""},
                }]}),
            ),
            (
                "GET",
                "/v1/models/double/metadata",
                "",
                200,
                json!({
                    "model_spec": {"name": "double", "signature_name": "", "version": "1"},
                    "metadata": {"signature_def": {"signature_def": {"serving_default": {
                        "inputs": {"x": tensor("x")},
                        "outputs": {"y": tensor("y")},
                        "method_name": "tensorflow/serving/predict",
                    }}}},
                }),
            ),
            (
                "POST",
                "/v1/models/double:predict",
                r#"{"signature_name": "serving_default", "instances": [{"x": [1, 2]}, {"x": [3, 4]}]}"#,
                200,
                json!({"predictions": [[2.0, 4.0], [6.0, 8.0]]}),
            ),
            (
                "POST",
                "/v1/models/double/versions/1:predict",
                r#"{"inputs": {"x": [[1, 2]]}}"#,
                200,
                json!({"outputs": [[2.0, 4.0]]}),
            ),
            (
                "GET",
                "/v1/models/double/versions/7",
                "",
                404,
                json!({"error": "version `7` of model `double` not found"}),
            ),
        ],
    );
}

#[test]
fn torchserve() {
    exchange(
        Dialect::TorchServe,
        &[
            ("GET", "/ping", "", 200, json!({"status": "Healthy"})),
            (
                "GET",
                "/models",
                "",
                200,
                json!({"models": [{"modelName": "double", "modelUrl": "model.onnx"}]}),
            ),
            ("POST", "/predictions/double", "[1, 2]", 200, json!([2.0, 4.0])),
            (
                "PUT",
                "/predictions/double/1",
                r#"{"data": [[1, 2], [3, 4]]}"#,
                200,
                json!([[2.0, 4.0], [6.0, 8.0]]),
            ),
            (
                "POST",
                "/predictions/double",
                r#"{"instances": [[1, 2]]}"#,
                200,
                json!({"predictions": [[2.0, 4.0]]}),
            ),
            (
                "POST",
                "/predictions/other",
                "[1, 2]",
                404,
                json!({"code": 404, "type": "ModelNotFoundException", "message": "model `other` not found"}),
            ),
            (
                "POST",
                "/predictions/double/2.0",
                "[1, 2]",
                404,
                json!({
                    "code": 404,
                    "type": "ModelVersionNotFoundException",
                    "message": "version `2.0` of model `double` not found",
                }),
            ),
        ],
    );
    let described = serve(&[Dialect::TorchServe]).get("/models/double").json();
    let model = &described[0];
    assert_eq!((&model["modelName"], &model["modelVersion"]), (&json!("double"), &json!("1")));
    assert_eq!((&model["batchSize"], &model["workers"][0]["status"]), (&json!(32), &json!("READY")));
}

#[test]
fn sagemaker() {
    let server = serve(&[Dialect::SageMaker]);
    let ping = server.get("/ping");
    assert_eq!((ping.status, ping.text.as_str()), (200, ""));
    let json_type = "content-type: application/json\r\n";
    let csv = "content-type: text/csv\r\n";
    for (headers, body, expected) in [
        (json_type.to_owned(), "[[1, 2], [3, 4]]", "[[2.0,4.0],[6.0,8.0]]"),
        (json_type.to_owned(), r#"{"instances": [[1, 2]]}"#, r#"{"predictions":[[2.0,4.0]]}"#),
        (json_type.to_owned(), r#"{"inputs": [[1, 2]]}"#, r#"{"outputs":[[2.0,4.0]]}"#),
        (csv.to_owned(), "1,2\n3, 4\n", "[[2.0,4.0],[6.0,8.0]]"),
        (format!("{csv}accept: text/csv\r\n"), "1,2\r\n3,4\r\n", "2.0,4.0\n6.0,8.0\n"),
    ] {
        let response = server.send("POST", "/invocations", &headers, body);
        assert_eq!((response.status, response.text.as_str()), (200, expected), "{headers}{body}");
    }
    let invalid = server.send("POST", "/invocations", csv, "1,2\n3\n");
    assert_eq!(invalid.json(), json!({"error": "line 2: 1 values where the lines before have 2"}));
}

#[test]
fn vertex() {
    let server = serve(&[Dialect::Vertex]);
    assert_eq!(server.get("/health").status, 200);
    let body = r#"{"instances": [[1, 2]], "parameters": {"any": ["thing"]}}"#;
    let response = server.send("POST", "/predict", "content-type: application/json\r\n", body);
    assert_eq!((response.status, response.json()), (200, json!({"predictions": [[2.0, 4.0]]})));
}

#[test]
fn azureml() {
    let server = serve(&[Dialect::AzureMl]);
    let healthy = server.get("/");
    assert_eq!((healthy.status, healthy.text.as_str()), (200, "Healthy"));
    let page = server.send("GET", "/", "accept: text/html\r\n", "");
    assert!(page.text.starts_with("<!doctype html>"), "{}", page.text);
    for (body, status, expected) in [
        (r#"{"data": [[1, 2], [3, 4]]}"#, 200, json!([[2.0, 4.0], [6.0, 8.0]])),
        (r#"{"input_data": [[1, 2]]}"#, 200, json!([[2.0, 4.0]])),
        (r#"{"data": 1}"#, 400, json!({"message": "data: shape [], but the model expects [any, 2]"})),
    ] {
        let response = server.send("POST", "/score", "", body);
        assert_eq!((response.status, response.json()), (status, expected), "{body}");
    }
}

#[test]
fn flask() {
    exchange(
        Dialect::Flask,
        &[
            (
                "GET",
                "/health",
                "",
                200,
                json!({"status": "degraded", "gpu_available": false, "gpu_name": null}),
            ),
            (
                "POST",
                "/predict",
                r#"{"input": [1, 2]}"#,
                200,
                json!({"prediction": [2.0, 4.0], "device": "cpu"}),
            ),
        ],
    );
}

#[test]
fn without_a_setting_there_are_no_other_apis() {
    let server = TestServer::start(|_| {});
    for path in ["/ping", "/models", "/v1/models", "/v1/models/double"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

#[test]
fn of_other_apis_only_probes_need_no_key() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("key-{:x}", std::process::id())).unwrap();
    let server = TestServer::start(|settings| {
        settings.dialects = Dialects::new(vec![Dialect::TorchServe, Dialect::KServeV1]);
        settings.server.keys = ApiKeys::from_file(file.path()).unwrap();
    });
    assert_eq!(server.get("/ping").status, 200);
    for path in ["/models", "/models/double", "/v1/models"] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
    assert_eq!(server.send("POST", "/predictions/double", "", "[1, 2]").status, 401);
}
