//! Models of Python: the promises of the server hold for them, too.

use serde_json::json;

use crate::serve_support::client::Ask;
use crate::serve_support::made::twice;
use crate::serve_support::server::{Server, Stage, eventually, most_resident, signal};
use crate::serve_support::{occupy, on_threads, receive_all, send_all, until_queued};

/// Doubles `F32[rows, 2]`, after these lines.
fn double(lines: &str) -> String {
    format!(
        "from typing import Annotated
import os, sys, time
import numpy as np
class Double:
    def predict(self, x: Annotated[np.ndarray, 'float32[-1,2]']) -> Annotated[np.ndarray, 'float32[-1,2]']:
        {lines}
        return x * 2
"
    )
}

/// Serves `model.py` with this source; `None` where no Python has numpy.
#[track_caller]
fn serve(source: &str, arguments: &[&str]) -> Option<(Stage, Server)> {
    let (stage, python) = Stage::python()?;
    stage.write("scorer/model.py", source.as_bytes());
    let arguments: Vec<&str> = python.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
    let server = stage.serve("scorer", &arguments);
    Some((stage, server))
}

#[test]
fn tensors_go_through_every_protocol_without_onnx_runtime() {
    let Some((_stage, server)) = serve(&double("print('batch of', len(x))"), &[]) else { return };
    let reply = server.ask(&Ask::predict("[[1, 2], [3, 4]]")).ok().json();
    assert_eq!(reply, json!({"prediction": [[2.0, 4.0], [6.0, 8.0]], "device": "cpu"}));
    let infer = r#"{"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}"#;
    let reply = server.ask(&Ask::post("/v2/models/scorer/infer", infer)).ok().json();
    assert_eq!(reply["outputs"][0]["data"], json!([2.0, 4.0]));
    let (_, health) = server.health();
    assert!(health["models"][0]["engine"].as_str().unwrap().starts_with("Python 3."), "{health}");
    eventually("the log has what the model prints", || {
        server.log().contains("engine output model=scorer stream=stdout text=\"batch of 2\"")
    });
}

#[test]
fn rows_of_mixed_fields_are_answered_with_rows_of_fields() {
    let source = "class Scorer:
    def predict(self, rows: list[dict]) -> list[dict]:
        return [{'name': row['name'], 'adult': row['age'] >= 18, 'ratio': row['age'] / 4 if row['age'] else float('nan')}
                for row in rows]
";
    let Some((_stage, server)) = serve(source, &[]) else { return };
    let reply = server.ask(&Ask::predict(r#"[{"age": 3, "name": "ä"}, {"age": 0, "name": ""}]"#)).ok().json();
    let expected =
        json!([{"name": "ä", "adult": false, "ratio": 0.75}, {"name": "", "adult": false, "ratio": null}]);
    assert_eq!(reply["prediction"], expected);
    let reply = server.ask(&Ask::predict(r#"{"age": 20, "name": "x"}"#)).ok().json();
    assert_eq!(reply["prediction"], json!({"name": "x", "adult": true, "ratio": 5.0}));
    let reply = server.ask(&Ask::predict(r#"[{"age": 20}]"#));
    assert_eq!(
        (reply.status, reply.json()["error"].as_str()),
        (500, Some("the engine failed: KeyError: 'name'"))
    );
    assert_eq!(server.ask(&Ask::predict("[{]")).status, 400);
    let infer = r#"{"inputs": [{"name": "json", "shape": [1], "datatype": "BYTES", "data": ["{\"age\": 4, \"name\": \"y\"}"]}]}"#;
    let reply = server.ask(&Ask::post("/v2/models/scorer/infer", infer)).ok().json();
    assert_eq!(reply["outputs"][0]["data"], json!([r#"{"name": "y", "adult": false, "ratio": 1.0}"#]));
}

#[test]
fn rows_that_do_not_fit_the_dataclass_are_400_and_no_failure_of_the_engine() {
    let source = "from dataclasses import dataclass
@dataclass
class Person:
    name: str
    age: int = 0
class Scorer:
    def predict(self, rows: list[Person]) -> list:
        return [len(row.name) + row.age for row in rows]
";
    let Some((_stage, server)) = serve(source, &["--queue-time", "60s"]) else { return };
    let held = server.hold_engine();
    let mut first = occupy(&server, &Ask::predict(r#"{"name": ""}"#));
    let asks = [
        r#"[{"name": "abc"}, {"name": "d", "age": 5}]"#,
        r#"[{"name": "abc"}, {"nane": "d"}]"#,
        r#"{"age": 7}"#,
        r#"{"name": "xy"}"#,
        "[[1]]",
    ];
    let asks: Vec<Ask> = asks.into_iter().map(Ask::predict).collect();
    let mut waiting = send_all(&server, &asks);
    until_queued(&server, asks.len());
    drop(held);
    first.receive().unwrap().ok();
    let replies = receive_all(&mut waiting);
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses, [200, 400, 400, 200, 400]);
    assert_eq!(
        (&replies[0].json()["prediction"], &replies[3].json()["prediction"]),
        (&json!([3, 6]), &json!(2))
    );
    let error = replies[1].json()["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("row 1: ") && error.contains("'nane'"), "{error}");
    assert_eq!(server.metric("cudock_failed_total"), 0);
    // The rows that fit ran together.
    assert_eq!(server.metric("cudock_batches_total"), 2);
}

#[test]
fn a_file_beside_a_model_grants_no_trust_and_the_flag_does() {
    let Some((stage, python)) = Stage::python() else { return };
    let marker = stage.path("marker");
    let pickle = format!("cos\nsystem\n(S'touch {}'\ntR.", marker.display());
    for project in ["models/evil", "project"] {
        stage.write(&format!("{project}/model.pkl"), pickle.as_bytes());
    }
    stage.write("models/evil/cudock.toml", b"[serve]\ntrust = true\n");
    stage.write("models/good/model.py", double("").as_bytes());
    stage.write("project/cudock.toml", b"[workload]\nmodel = \"model.pkl\"\n[serve]\ntrust = true\n");
    let arguments: Vec<&str> = python.iter().map(String::as_str).collect();
    let server = stage.serve("models", &arguments);
    let refused = server.ask(&Ask::post("/predict/evil", r#"{"input": [[1, 2]]}"#));
    assert_eq!(refused.status, 503);
    assert!(refused.text().contains("grants no trust"), "{}", refused.text());
    assert!(server.log().contains("ready good: open "), "{}", server.log());
    let project = stage.path("project");
    let serve = |flags: &[&str]| {
        let arguments =
            [&["serve", project.to_str().unwrap(), "--device", "cpu", "--port", "0"], &arguments[..], flags];
        crate::support::shown(&stage.command(&arguments.concat()).output().unwrap())
    };
    let text = serve(&[]);
    assert!(text.contains("grants no trust") && text.contains("hint: remove it, and pass --trust"), "{text}");
    assert!(!marker.exists());
    // The pickle is loaded, but is not a model.
    let text = serve(&["--trust"]);
    assert!(marker.exists() && text.contains("has no method `predict`"), "{text}");
}

#[test]
fn a_row_that_raises_fails_alone_and_only_the_log_has_the_traceback() {
    let source = double("if 13 in x[:, 0]: raise ValueError('unlucky row')");
    let Some((_stage, server)) = serve(&source, &["--queue-time", "60s"]) else { return };
    let engine = server.engine();
    let held = server.hold_engine();
    let mut first = occupy(&server, &Ask::predict("[[0, 0]]"));
    let asks: Vec<Ask> = (10..16).map(|number| Ask::predict(&format!("[[{number}, 0]]"))).collect();
    let mut waiting = send_all(&server, &asks);
    until_queued(&server, 6);
    drop(held);
    first.receive().unwrap().ok();
    for (number, reply) in (10..16).zip(receive_all(&mut waiting)) {
        if number == 13 {
            assert_eq!(reply.status, 500);
            assert_eq!(reply.json()["error"], "the engine failed: ValueError: unlucky row");
        } else {
            assert_eq!(reply.ok().json()["prediction"][0][0], twice(number));
        }
    }
    eventually("the log has the traceback", || server.log().contains("Traceback (most recent call last)"));
    assert_eq!((server.engine(), server.metric("cudock_failed_total")), (engine, 1));
}

#[test]
fn a_worker_that_is_killed_or_hangs_costs_no_other_request() {
    let source = double("while 13 in x[:, 0]: pass");
    let Some((_stage, server)) = serve(&source, &["--queue-time", "60s", "--engine-timeout", "3s"]) else {
        return;
    };
    let asks: Vec<Ask> = (10..16).map(|number| Ask::predict(&format!("[[{number}, 0]]"))).collect();
    let mut waiting = send_all(&server, &asks);
    let replies = receive_all(&mut waiting);
    for (number, reply) in (10..16).zip(replies) {
        if number == 13 {
            assert_eq!(reply.status, 500, "{}", reply.text());
            assert!(reply.text().contains("timed out"), "{}", reply.text());
        } else {
            assert_eq!(reply.ok().json()["prediction"][0][0], twice(number));
        }
    }
    let restarts = server.metric("cudock_engine_restarts_total");
    signal(server.engine(), "KILL");
    assert_eq!(server.ask(&Ask::predict("[[1, 2]]")).ok().json()["prediction"], json!([[2.0, 4.0]]));
    assert_eq!(server.metric("cudock_engine_restarts_total"), restarts + 1);
    assert_eq!(server.metric("cudock_failed_total"), 1);
}

#[test]
fn a_worker_that_leaks_is_replaced_and_no_request_fails() {
    let source = double("self.__dict__.setdefault('kept', []).append(np.ones(4 << 20, dtype='u1'))");
    let arguments = ["--engine-memory", "200MiB", "--queue-time", "60s", "--max-batch", "1"];
    let Some((_stage, server)) = serve(&source, &arguments) else { return };
    let first = server.engine();
    let is_replaced = || server.metric("cudock_engine_restarts_total") >= 2;
    let answered: usize = on_threads(4, |number| {
        let mut connection = server.connect();
        let mut answered = 0;
        while !is_replaced() {
            for _ in 0..10 {
                let reply = connection.ask(&Ask::predict(&format!("[[{number}, 1]]"))).ok();
                assert_eq!(reply.json()["prediction"][0][0], twice(number));
                answered += 1;
            }
        }
        answered
    })
    .into_iter()
    .sum();
    assert!(answered >= 50, "{answered} requests of 4 MiB each filled 200 MiB twice");
    assert_eq!(server.metric("cudock_failed_total"), 0);
    eventually("one worker is left", || server.engines().len() == 1);
    assert_ne!(server.engine(), first);
    assert!(
        server.log().contains("engine memory") && !server.log().contains("engine lost"),
        "{}",
        server.log()
    );
}

#[test]
fn a_gigabyte_of_output_takes_no_memory_of_the_server() {
    let megabyte = "('x' * 99 + '\\n') * 10_000";
    let source =
        double(&format!("[sys.stdout.write({megabyte}) for _ in range(1000 if x[0, 0] == 7 else 0)]"));
    let Some((_stage, server)) = serve(&source, &[]) else { return };
    server.ask(&Ask::predict("[[7, 0]]")).ok();
    eventually("the log says what is missing", || server.log().contains("lines dropped"));
    assert!(most_resident(server.pid()) < 200 << 20, "{} bytes", most_resident(server.pid()));
}

#[test]
fn a_model_that_cannot_be_loaded_ends_the_command_with_the_reason() {
    let Some((stage, python)) = Stage::python() else { return };
    stage.write("model.py", b"import no_such_module\n");
    stage.write("model.keras", b"");
    let serve = |what: &str| {
        let path = stage.path(what);
        let arguments =
            ["serve", path.to_str().unwrap(), "--device", "cpu", "--port", "0", &python[0], &python[1]];
        let output = stage.command(&arguments).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let stderr = serve("model.py");
    let pip = format!("install it: {} -m pip install no_such_module", python[1]);
    assert!(
        stderr.contains("ModuleNotFoundError: No module named 'no_such_module'") && stderr.contains(&pip),
        "{stderr}"
    );
    let stderr = serve("model.keras");
    assert!(stderr.contains("it is a Keras model") && stderr.contains("hint: export it first"), "{stderr}");
}

#[test]
fn changed_code_is_loaded_by_itself() {
    let source = double("").replace("x * 2", "x * factor.FACTOR").replace("import os,", "import factor, os,");
    let Some((stage, python)) = Stage::python() else { return };
    stage.write("models/scorer/model.py", source.as_bytes());
    stage.write("models/scorer/factor.py", b"FACTOR = 2");
    let arguments: Vec<&str> = python.iter().map(String::as_str).chain(["--watch"]).collect();
    let server = stage.serve("models", &arguments);
    let factor = || server.ask(&Ask::predict("[[1, 1]]")).ok().json()["prediction"][0][0].clone();
    assert_eq!(factor(), 2.0);
    stage.swap("models/scorer/factor.py", b"FACTOR = 30");
    eventually("the change shows", || factor() == 30.0);
}
