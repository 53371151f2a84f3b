//! Models that come, change and go while they are served.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::serve_support::client::Ask;
use crate::serve_support::made::times;
use crate::serve_support::on_threads;
use crate::serve_support::server::{Server, Stage, eventually};
use cudock_testkit::onnx;

/// The model's result for 1.
#[track_caller]
fn factor(server: &Server, path: &str) -> Value {
    let reply = server.ask(&Ask::post(path, r#"{"input": [[1, 1, 1, 1]]}"#)).ok();
    reply.json()["prediction"][0][0].clone()
}

/// Changes the model while requests run; every one must be answered by the model before or after, and requests sent
/// later never get the earlier one again.
fn changes_under_load(server: &Server, change: impl Fn() + Sync, name: &str) {
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let seen: Vec<Vec<Value>> = on_threads(9, |number| {
        let mut seen: Vec<Value> = Vec::new();
        if number == 8 {
            eventually("requests are answered", || answered.load(Ordering::SeqCst) > 200);
            change();
            eventually("the change shows", || factor(server, "/predict") == 3.0);
            let before = answered.load(Ordering::SeqCst);
            eventually("and requests go on", || answered.load(Ordering::SeqCst) > before + 200);
            done.store(true, Ordering::SeqCst);
            return seen;
        }
        let mut connection = server.connect();
        while !done.load(Ordering::SeqCst) {
            let one = connection.ask(&Ask::predict("[[1, 1, 1, 1]]")).ok().json()["prediction"][0][0].clone();
            if seen.last() != Some(&one) {
                seen.push(one);
            }
            answered.fetch_add(1, Ordering::SeqCst);
        }
        seen
    });
    for seen in seen.iter().take(8) {
        assert!(*seen == [json!(2.0), json!(3.0)] || *seen == [json!(3.0)], "{name}: {seen:?}");
    }
}

#[test]
fn a_reload_under_load_fails_no_request() {
    let Some(stage) = Stage::new() else { return };
    stage.write("m.onnx", &times(2.0));
    let server = stage.serve("m.onnx", &["--queue-time", "60s"]);
    let engine = server.engine();
    let change = || {
        stage.swap("m.onnx", &times(3.0));
        assert_eq!(server.reload("m"), 200);
        assert_eq!(factor(&server, "/predict"), 3.0, "a load that is answered is done");
    };
    changes_under_load(&server, change, "load");
    eventually("the engine before has ended", || !server.engines().contains(&engine));
    assert_eq!(server.engines().len(), 1);
}

#[test]
fn sighup_reloads_too() {
    let Some(stage) = Stage::new() else { return };
    stage.write("m.onnx", &times(2.0));
    let server = stage.serve("m.onnx", &["--queue-time", "60s"]);
    let change = || {
        stage.swap("m.onnx", &times(3.0));
        server.signal("HUP");
    };
    changes_under_load(&server, change, "SIGHUP");
}

#[test]
fn a_watched_file_that_changes_is_loaded_by_itself() {
    let Some(stage) = Stage::new() else { return };
    stage.write("m.onnx", &times(2.0));
    let server = stage.serve("m.onnx", &["--watch", "--queue-time", "60s"]);
    changes_under_load(&server, || stage.swap("m.onnx", &times(3.0)), "watch");
}

#[test]
fn a_reload_that_fails_keeps_the_model_and_health_reports_it() {
    let Some(stage) = Stage::new() else { return };
    stage.write("m.onnx", &times(2.0));
    let server = stage.serve("m.onnx", &[]);
    stage.swap("m.onnx", b"not a model");
    let reply = server.ask(&Ask::post("/v2/repository/models/m/load", ""));
    assert_eq!(reply.status, 500, "{}", reply.text());
    assert!(reply.text().contains("still serving the previous model"), "{}", reply.text());
    assert_eq!(factor(&server, "/predict"), 2.0);
    let (status, health) = server.health();
    assert_eq!((status, health["status"].as_str()), (200, Some("degraded")), "{health}");
    assert!(health["reason"].as_str().unwrap().contains("m.onnx"), "{health}");
    stage.swap("m.onnx", &times(5.0));
    assert_eq!(server.reload("m"), 200);
    assert_eq!(factor(&server, "/predict"), 5.0);
    assert_eq!(server.health().1["status"], "healthy");
    assert_eq!(server.reload("n"), 404);
}

#[test]
fn a_directory_serves_its_models_and_their_versions() {
    let Some(stage) = Stage::new() else { return };
    stage.write("models/flat.onnx", &times(2.0));
    stage.write("models/one/model.onnx", &times(3.0));
    stage.write("models/many/9/model.onnx", &times(9.0));
    stage.write("models/many/10/model.onnx", &times(10.0));
    let server = stage.serve("models", &[]);
    assert_eq!(factor(&server, "/predict/flat"), 2.0);
    assert_eq!(factor(&server, "/predict/one"), 3.0);
    assert_eq!(factor(&server, "/predict/many"), 10.0, "the newest is the largest number");
    assert_eq!(factor(&server, "/predict/many/9"), 9.0);
    let which = server.ask(&Ask::predict("[[1, 1, 1, 1]]"));
    assert_eq!(which.status, 400);
    assert!(which.text().contains("flat, many, one"), "{}", which.text());
    let infer = r#"{"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 1, 1, 1]}]}"#;
    let reply = server.ask(&Ask::post("/v2/models/many/versions/9/infer", infer)).ok().json();
    assert_eq!((&reply["model_version"], &reply["outputs"][0]["data"][0]), (&"9".into(), &9.0.into()));
    let index = server.ask(&Ask::post("/v2/repository/index", "{}")).ok().json();
    let entries: BTreeSet<(String, String)> = index
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (entry["name"].as_str().unwrap().to_owned(), entry["version"].as_str().unwrap().to_owned())
        })
        .collect();
    let right = [("flat", "1"), ("many", "10"), ("many", "9"), ("one", "1")];
    assert_eq!(entries, right.map(|(name, version)| (name.to_owned(), version.to_owned())).into());
    assert_eq!(server.get("/v2/models/many").ok().json()["versions"], json!(["9", "10"]));
    assert_eq!(server.get("/v2/models/many/versions/9/ready").status, 200);
}

#[test]
fn a_watched_directory_is_followed() {
    let Some(stage) = Stage::new() else { return };
    stage.write("models/m/1/model.onnx", &times(1.0));
    let server = stage.serve("models", &["--watch"]);
    stage.write("models/next/model.onnx", &onnx::tiny());
    stage.write("new/model.onnx", &times(2.0));
    std::fs::rename(stage.path("new"), stage.path("models/m/2")).unwrap();
    eventually("a new version is served", || factor(&server, "/predict/m") == 2.0);
    assert_eq!(factor(&server, "/predict/m/1"), 1.0);
    eventually("a new model is served", || server.get("/v2/models/next/ready").status == 200);
    std::fs::remove_dir_all(stage.path("models/m/1")).unwrap();
    eventually("a version that is gone is gone", || server.get("/v2/models/m/versions/1").status == 404);
    assert_eq!(factor(&server, "/predict/m"), 2.0);
    eventually("its engine is gone too", || server.engines().len() == 2);
}

#[test]
fn one_corrupt_model_does_not_keep_the_others_from_being_served() {
    let Some(stage) = Stage::new() else { return };
    stage.write("models/good.onnx", &times(2.0));
    stage.write("models/bad.onnx", &times(2.0)[..40]);
    let server = stage.serve("models", &[]);
    assert_eq!(factor(&server, "/predict/good"), 2.0);
    let (status, health) = server.health();
    assert_eq!((status, health["status"].as_str()), (200, Some("degraded")), "{health}");
    assert!(health["reason"].as_str().unwrap().contains("bad"), "{health}");
    let reply = server.ask(&Ask::post("/predict/bad", r#"{"input": [[1, 1, 1, 1]]}"#));
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.text().contains("bad.onnx"), "{}", reply.text());
    stage.swap("models/bad.onnx", &times(7.0));
    assert_eq!(server.reload("bad"), 200);
    assert_eq!(factor(&server, "/predict/bad"), 7.0);
    assert_eq!(server.health().1["status"], "healthy");
}
