//! `cudock bench` as a user types it, against small servers.

mod servers;
mod tune;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cudock_testkit::http::Request;
use servers::{relu_model, reply, server};

use crate::support::{code, cudock, json, run, schema, shown};

const QUICK: [&str; 4] = ["--duration", "300ms", "--warm-up", "50ms"];

fn bench(arguments: &[&str]) -> std::process::Output {
    run(&[&["bench"], arguments, &QUICK].concat())
}

/// A server with the metadata of a model of four floats a row, and the same prediction for every request.
fn model_server(seen: &Arc<Mutex<Vec<Request>>>) -> String {
    let seen = Arc::clone(seen);
    server(move |request| {
        let response = match request.path.as_str() {
            "/v2/repository/index" => reply(200, r#"[{"name": "m", "state": "READY"}]"#),
            "/v2/models/m" => reply(
                200,
                r#"{"name": "m", "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}],
                    "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 1]}]}"#,
            ),
            "/predict" | "/v2/models/m/infer" => reply(200, r#"{"prediction": [[1.5]], "device": "cpu"}"#),
            _ => reply(404, r#"{"error": "nothing here"}"#),
        };
        seen.lock().unwrap().push(request.clone());
        response
    })
}

#[test]
fn a_server_that_is_not_there_is_exit_3_with_a_hint() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = bench(&[&format!("http://127.0.0.1:{port}")]);
    assert_eq!(code(&output), 3, "{}", shown(&output));
    let text = shown(&output);
    assert!(
        text.contains("cannot connect to 127.0.0.1") && text.contains("hint: start a server first"),
        "{text}"
    );
}

#[test]
fn a_first_request_that_is_refused_shows_what_the_server_says() {
    let url = server(|_| reply(422, r#"{"error": "input[0]: 3 numbers where 4 are taken"}"#));
    let output = bench(&[&url, "--shape", "3"]);
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(shown(&output).contains("422 input[0]: 3 numbers where 4 are taken"), "{}", shown(&output));
}

#[test]
fn a_server_without_model_metadata_needs_a_shape() {
    let url = server(|request| match request.path.as_str() {
        "/predict" => reply(200, "[[1]]"),
        _ => reply(404, "{}"),
    });
    let output = bench(&[&url]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("hint: pass the shape of one row, as --shape 512"), "{}", shown(&output));
    assert_eq!(code(&bench(&[&url, "--shape", "8", "-c", "2"])), 0);
}

#[test]
fn json_has_the_shape_that_others_rely_on() {
    let url = model_server(&Arc::default());
    let output = bench(&[&url, "-c", "1,3", "--rate", "100", "--format", "json"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let report = json(&output);
    assert_eq!(report["schema"], 1);
    assert_eq!(report["path"], "/predict");
    assert_eq!(report["protocol"], "predict");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[1]["load"]["kind"], "closed");
    assert_eq!(runs[1]["load"]["clients"], 3);
    assert_eq!(runs[2]["load"]["kind"], "open");
    assert_eq!(runs[2]["load"]["arrivals"], "poisson");
    for run in runs {
        assert!(run["goodput_per_second"].as_f64().unwrap() > 0.0, "{run}");
        for name in ["p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms"] {
            assert!(run["latency"][name].as_f64().unwrap() > 0.0, "{name}: {run}");
        }
        assert_eq!(run["statuses"]["200"], run["requests"]);
        assert_eq!(run["unanswered"], 0);
    }
    assert!(runs[0]["checked"].as_u64().unwrap() > 0);
}

#[test]
fn each_protocol_has_its_own_path_and_body() {
    for (protocol, path, content_type, length) in [
        ("predict", "/predict", "application/json", None),
        ("oip", "/v2/models/m/infer", "application/json", None),
        ("oip-binary", "/v2/models/m/infer", "application/octet-stream", None),
        ("raw", "/predict", "application/octet-stream", Some(2 * 4 * 4)),
        ("npy", "/predict", "application/x-npy", Some(128 + 2 * 4 * 4)),
    ] {
        let seen = Arc::default();
        let url = model_server(&seen);
        let output = bench(&[&url, "-c", "1", "--protocol", protocol, "--rows", "2", "--bodies", "3"]);
        assert_eq!(code(&output), 0, "{protocol}: {}", shown(&output));
        let seen = seen.lock().unwrap();
        let requests: Vec<&Request> = seen.iter().filter(|request| request.path == path).collect();
        let bodies: std::collections::BTreeSet<&[u8]> =
            requests.iter().map(|request| request.body.as_slice()).collect();
        assert_eq!(bodies.len(), 3, "{protocol}: different bodies");
        for one in requests {
            assert_eq!(one.header("content-type"), Some(content_type), "{protocol}");
            assert!(length.is_none_or(|length| length == one.body.len()), "{protocol}: {}", one.body.len());
        }
    }
}

#[test]
fn the_table_shows_load_rates_and_percentiles() {
    let url = model_server(&Arc::default());
    let output = bench(&[&url, "-c", "2"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(head[..8], ["load", "responses/s", "rows/s", "p50", "p90", "p99", "p99.9", "max"]);
    let row = lines.next().unwrap();
    assert!(row.starts_with("2 clients ") && row.contains(" ms"), "{row}");
    assert!(
        text.contains("responses compared, all equal to the response to the same request alone"),
        "{text}"
    );
}

#[test]
fn answers_mixed_up_under_load_are_a_no() {
    let alone = AtomicBool::new(true);
    let count = Mutex::new(0);
    let url = server(move |request| {
        if request.path != "/predict" {
            return reply(404, "{}");
        }
        let mut count = count.lock().unwrap();
        *count += 1;
        // The first four are the requests that are sent alone.
        alone.store(*count <= 4, Ordering::SeqCst);
        let number = if alone.load(Ordering::SeqCst) { 1 } else { 2 };
        reply(200, &format!("[[{number}.5]]"))
    });
    let output = bench(&[&url, "--shape", "4", "--bodies", "4", "-c", "1", "--check-every", "1"]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    assert!(shown(&output).contains("differ from the response to the same request alone"));
}

#[test]
fn a_file_and_headers_are_sent_as_they_are() {
    let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let url = server(move |request| {
        noted.lock().unwrap().push(request.clone());
        reply(200, "{}")
    });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("request.txt");
    std::fs::write(&file, "any bytes").unwrap();
    let arguments = [
        &format!("{url}/invocations"),
        "--body",
        file.to_str().unwrap(),
        "--header",
        "Content-Type: text/plain",
        "--header",
        "Authorization: Bearer k",
        "-c",
        "1",
    ];
    let output = bench(&arguments);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|request| request.path == "/invocations" && request.body == b"any bytes"));
    assert_eq!(seen[0].header("content-type"), Some("text/plain"));
    assert_eq!(seen[0].header("authorization"), Some("Bearer k"));
    let bad = bench(&[&url, "--body", file.to_str().unwrap(), "--header", "no header"]);
    assert_eq!(code(&bad), 2);
}

#[test]
fn a_server_with_several_models_needs_the_name_of_one() {
    let url = server(|request| match request.path.as_str() {
        "/v2/repository/index" => reply(200, r#"[{"name": "a"}, {"name": "b"}]"#),
        _ => reply(404, "{}"),
    });
    let output = bench(&[&url]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("the server has several models: a, b"), "{}", shown(&output));
}

#[test]
fn a_picture_is_drawn() {
    let url = model_server(&Arc::default());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("load.svg");
    let output = bench(&[&url, "-c", "1,2", "--plot", file.to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let svg = std::fs::read_to_string(file).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("2 clients"));
}

#[test]
fn the_search_finds_a_rate_that_the_server_can_bear() {
    // One response at a time, each 5 ms: 200 a second are more than it can give.
    let turn = Mutex::new(());
    let url = server(move |request| {
        if request.path != "/predict" {
            return reply(404, "{}");
        }
        let _turn = turn.lock().unwrap();
        std::thread::sleep(Duration::from_millis(5));
        reply(200, "[[1]]")
    });
    let output =
        bench(&[&url, "--shape", "4", "--target-p99", "100ms", "--arrivals", "constant", "--format", "json"]);
    let report = json(&output);
    let found = &report["search"];
    assert_eq!(found["target_p99_ms"], 100.0);
    let steps = found["steps"].as_array().unwrap();
    assert!(steps.iter().any(|step| step["met"] == false), "{report}");
    if let Some(rate) = found["rate"].as_f64() {
        // Short steps allow slightly more than the lasting rate: 100 ms of backlog after 300 ms.
        assert!(rate > 0.0 && rate < 300.0, "{rate}");
        assert_eq!(code(&output), 0);
    } else {
        assert_eq!(code(&output), 1, "a machine too busy to answer in time");
    }
}

#[test]
fn arguments_that_make_no_load_are_refused() {
    for arguments in [
        &["http://localhost:1", "-c", "0"][..],
        &["http://localhost:1", "--rate", "0"],
        &["http://localhost:1", "--duration", "0s"],
        &["https://localhost:1"],
        &[],
    ] {
        let output = run(&[&["bench"], arguments].concat());
        assert_eq!(code(&output), 2, "{arguments:?}: {}", shown(&output));
    }
}

#[test]
fn a_model_without_a_server_gives_the_limit() {
    let Some(library) = cudock_testkit::require_onnxruntime() else { return };
    let directory = tempfile::tempdir().unwrap();
    let model = directory.path().join("relu.onnx");
    std::fs::write(&model, relu_model(8)).unwrap();
    let mut command =
        cudock(&["bench", "--model", model.to_str().unwrap(), "--batch", "1,16", "--format", "json"]);
    let output = schema::output(command.args(QUICK).env("CUDOCK_ONNXRUNTIME", library));
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let report = json(&output);
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let (bare, with_json) = (&run["rows_per_second"], &run["with_json_rows_per_second"]);
        assert!(bare.as_f64().unwrap() > with_json.as_f64().unwrap(), "{run}");
        assert!(with_json.as_f64().unwrap() > 0.0);
    }
    assert!(report["json"]["read_us"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_model_that_is_not_there_is_a_bad_call() {
    let output = run(&["bench", "--model", "nowhere.onnx"]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("nowhere.onnx not found"), "{}", shown(&output));
}

#[test]
fn a_model_without_a_batch_dimension_is_measured_by_its_whole_input() {
    let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let url = server(move |request| {
        let response = match request.path.as_str() {
            "/v2/repository/index" => reply(200, r#"[{"name": "m", "state": "READY"}]"#),
            "/v2/models/m" => reply(
                200,
                r#"{"name": "m", "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3]}],
                    "outputs": [{"name": "y", "datatype": "FP32", "shape": [1]}]}"#,
            ),
            "/v2/models/m/infer" => reply(200, r#"{"outputs": []}"#),
            _ => reply(404, "{}"),
        };
        noted.lock().unwrap().push(request.clone());
        response
    });
    let output = bench(&[&url, "--protocol", "oip", "-c", "1"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let shape = seen.lock().unwrap().iter().any(|request| {
        request.path == "/v2/models/m/infer"
            && String::from_utf8_lossy(&request.body).contains("\"shape\":[1,3]")
    });
    assert!(shape, "the request has the model's own shape");
    let output = bench(&[&url, "--rows", "4"]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("no batch dimension"), "{}", shown(&output));
}
