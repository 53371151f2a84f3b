//! HTTP as in its standard, and endpoints that clients of other servers use.

use std::io::{Read, Write};
use std::net::Shutdown;

use crate::serve_support::client::Ask;
use crate::serve_support::made::times;
use crate::serve_support::occupy;
use crate::serve_support::server::{Stage, eventually};
use serde_json::json;

const ROW: &str = "[[1, 2, 3, 4]]";

#[test]
fn a_request_names_its_host_exactly_once() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &[]);
    for (head, status) in [
        ("GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n", 200),
        ("GET /live HTTP/1.0\r\n\r\n", 200),
        ("GET /live HTTP/1.1\r\n\r\n", 400),
        ("GET /live HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n", 400),
        ("GET /live HTTP/1.1\r\nhost: localhost\r\nHost: 127.0.0.1\r\n\r\n", 400),
        ("GET /live HTTP/1.0\r\nhost: localhost\r\nhost: 127.0.0.1\r\n\r\n", 400),
    ] {
        let mut connection = server.connect();
        connection.stream.write_all(head.as_bytes()).unwrap();
        let reply = connection.receive().unwrap();
        assert_eq!(reply.status, status, "{head:?}: {}", reply.text());
    }
}

#[test]
fn a_client_that_sends_no_more_still_gets_its_answer() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--queue-time", "60s"]);
    // At once, and while the response takes its time.
    for slow in [false, true] {
        let held = slow.then(|| server.hold_engine());
        let mut connection = server.connect();
        connection.send(&Ask::predict(ROW)).unwrap();
        connection.stream.shutdown(Shutdown::Write).unwrap();
        if slow {
            // Long enough for the end to be seen; it is not taken for leaving.
            for _ in 0..20 {
                server.get("/live").ok();
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            assert_eq!(server.metric("cudock_canceled_total"), 0);
        }
        drop(held);
        let mut response = String::new();
        connection.stream.read_to_string(&mut response).unwrap();
        let last = response.rsplit("HTTP/1.1 ").next().unwrap();
        assert!(last.starts_with("200 ") && last.contains("[[2.0,4.0,6.0,8.0]]"), "{response}");
    }
}

#[test]
fn a_request_cut_in_its_body_is_not_waited_for() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--client-timeout", "600s"]);
    let whole = Ask::predict(ROW).bytes();
    let mut connection = server.connect();
    connection.stream.write_all(&whole[..whole.len() - 5]).unwrap();
    connection.stream.shutdown(Shutdown::Write).unwrap();
    let mut response = Vec::new();
    let _ = connection.stream.read_to_end(&mut response);
    assert!(!String::from_utf8_lossy(&response).contains(" 200 "));
    eventually("nothing is held for it", || server.metric("cudock_held_bytes") == 0);
}

#[test]
fn health_shows_whether_there_is_a_gpu() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &[]);
    let (status, health) = server.health();
    assert_eq!((status, &health["gpu_available"], &health["gpu_name"]), (200, &json!(false), &json!(null)));
}

#[test]
fn the_protocol_of_models_has_what_tritons_has() {
    let Some(stage) = Stage::new() else { return };
    stage.write("models/one.onnx", &times(2.0));
    stage.write("models/two/1/model.onnx", &times(3.0));
    stage.write("models/broken.onnx", b"not a model");
    let server = stage.serve("models", &[]);
    server.ask(&Ask::post("/predict/two", format!("{{\"input\": {ROW}}}"))).ok();
    let stats = server.get("/v2/models/stats").ok().json();
    let counts: Vec<_> = stats["model_stats"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| (model["name"].as_str().unwrap().to_owned(), model["inference_count"].clone()))
        .collect();
    assert_eq!(counts, [("one".to_owned(), json!(0)), ("two".to_owned(), json!(1))]);
    assert_eq!(server.get("/v2/models/two/ready").ok().json(), json!({"name": "two", "ready": true}));

    let names = |body: &str| -> Vec<String> {
        let index = server.ask(&Ask::post("/v2/repository/index", body)).ok().json();
        let entries = index.as_array().unwrap().iter();
        entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    for all in ["", "{}", r#"{"ready": false}"#] {
        assert_eq!(names(all), ["one", "two", "broken"], "{all}");
    }
    assert_eq!(names(r#"{"ready": true}"#), ["one", "two"]);
    assert_eq!(server.ask(&Ask::post("/v2/repository/index", "[")).status, 400);
}

#[test]
fn a_request_is_answered_under_the_name_its_client_gave_it() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &[]);
    let reply =
        server.ask(&Ask::post("/predict", format!(r#"{{"id": "a \"b\"", "input": {ROW}}}"#))).ok().json();
    assert_eq!(reply, json!({"prediction": [[2.0, 4.0, 6.0, 8.0]], "device": "cpu", "id": "a \"b\""}));
    let anonymous = server.ask(&Ask::predict(ROW)).ok();
    assert!(anonymous.json().get("id").is_none());
    assert_eq!(anonymous.header("x-request-id"), None);
    for (ask, status) in [(Ask::predict(ROW), 200), (Ask::predict("[["), 400), (Ask::get("/nothing"), 404)] {
        let reply = server.ask(&ask.with("x-request-id", "r-17"));
        assert_eq!((reply.status, reply.header("x-request-id")), (status, Some("r-17")));
    }
}

#[test]
fn a_client_that_leaves_differs_from_one_that_sends_no_more() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--queue-time", "60s"]);
    let held = server.hold_engine();
    let mut first = occupy(&server, &Ask::predict(ROW));
    let mut stays = server.connect();
    stays.send(&Ask::predict(ROW)).unwrap();
    stays.stream.shutdown(Shutdown::Write).unwrap();
    let mut leaves = server.connect();
    leaves.send(&Ask::predict(ROW)).unwrap();
    crate::serve_support::until_queued(&server, 2);
    drop(leaves);
    eventually("the one that left is taken back", || server.metric("cudock_canceled_total") == 1);
    crate::serve_support::until_queued(&server, 1);
    drop(held);
    first.receive().unwrap().ok();
    let mut response = String::new();
    stays.stream.read_to_string(&mut response).unwrap();
    assert!(response.contains("[[2.0,4.0,6.0,8.0]]"), "{response}");
}
