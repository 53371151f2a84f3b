//! Models that are loaded when they are needed, and unloaded.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use cudock_project::{ByteSize, KeepLoaded, ServeOptions, TimeSpan};
use serde_json::{Value, json};

use crate::engine::{HELD, StartBehavior};
use crate::support::{MODEL_SIZE, TestResponse, TestServer, eventually, request};

const FIVE: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Options with memory for some of the models.
fn memory_for(models: usize) -> ServeOptions {
    let size = u64::try_from(MODEL_SIZE * models + MODEL_SIZE / 2).unwrap();
    ServeOptions { model_memory: Some(ByteSize(size)), ..ServeOptions::default() }
}

fn on_demand() -> ServeOptions {
    ServeOptions { on_demand: Some(true), ..ServeOptions::default() }
}

fn serve(models: &[&str], options: ServeOptions) -> Arc<TestServer> {
    Arc::new(TestServer::serve(models, options, |_| {}))
}

fn post(server: &TestServer, model: &str, action: &str) -> TestResponse {
    server.send("POST", &format!("/v2/repository/models/{model}/{action}"), "", "")
}

fn loads(server: &TestServer, model: &str) -> u64 {
    server.metric(&format!("cudock_model_loads_total{{model=\"{model}\""))
}

#[track_caller]
fn assert_doubled(response: &TestResponse, value: f32) {
    assert_eq!(response.status, 200, "{}", response.text);
    assert_eq!(response.json()["prediction"], json!([[value * 2.0, 2.0]]));
}

#[test]
fn clients_of_five_models_share_the_memory_of_two() {
    let server = serve(&FIVE, memory_for(2));
    assert_eq!(server.control.running(), (0, 0), "nothing is loaded at the start");
    let clients: Vec<_> = (0..8_usize)
        .map(|client| {
            let server = Arc::clone(&server);
            thread::spawn(move || {
                for turn in 0..40_usize {
                    // A step that is coprime to the number of models visits all of them in another order each.
                    let model = FIVE[(client + turn * (1 + client % 4)) % 5];
                    let value = f32::from(u8::try_from(turn).unwrap());
                    assert_doubled(&server.double(model, value, ""), value);
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    let (running, most) = server.control.running();
    assert!((1..=2).contains(&running) && most == 2, "{running} of at most {most} engines");
    assert!(FIVE.iter().all(|model| loads(&server, model) > 0), "{}", server.get("/metrics").text);
    for model in FIVE {
        assert_eq!(post(&server, model, "unload").status, 200);
    }
    assert_eq!((server.control.running().0, server.metric("cudock_models_loaded")), (0, 0));
    assert_eq!(server.metric("cudock_held_bytes"), 0);
}

#[test]
fn a_request_waits_for_a_load_but_not_longer_than_its_deadline() {
    let server = serve(&["a"], on_demand());
    for round in 1..=2 {
        server.control.set_starts(StartBehavior::Wait);
        let waiting = server.predict(3.0);
        let late = server.double("a", 1.0, "x-timeout-ms: 1\r\n");
        assert_eq!((late.status, late.json()["error"].as_str()), (504, Some("deadline exceeded")));
        server.control.set_starts(StartBehavior::Start);
        assert_eq!(waiting.join().unwrap(), (200, json!([[6.0, 2.0]])));
        // It waits until the load has been counted, which the response does not.
        assert_eq!(post(&server, "a", "unload").status, 200);
        assert_eq!(loads(&server, "a"), round, "both requests caused one load");
    }
}

#[test]
fn other_models_answer_while_one_is_loaded() {
    let server = serve(&["a", "b"], on_demand());
    assert_doubled(&server.double("b", 1.0, ""), 1.0);
    server.control.set_starts(StartBehavior::Wait);
    let clients = ["1", "2"].map(|_| {
        let server = Arc::clone(&server);
        thread::spawn(move || server.double("a", 2.0, ""))
    });
    eventually("it is being loaded", || status_of(&server, "a")["state"] == "loading");
    assert_doubled(&server.double("b", 1.0, ""), 1.0);
    server.control.set_starts(StartBehavior::Start);
    for client in clients {
        assert_doubled(&client.join().unwrap(), 2.0);
    }
    assert_eq!(loads(&server, "a"), 1);
}

fn status_of(server: &TestServer, model: &str) -> Value {
    let models = server.get("/status").json()["models"].clone();
    models.as_array().unwrap().iter().find(|entry| entry["name"] == model).unwrap().clone()
}

#[test]
fn a_load_that_fails_is_reported_and_not_repeated_for_every_request() {
    let server = serve(&["a"], on_demand());
    for known in [false, true] {
        server.control.set_starts(StartBehavior::Fail);
        let before = server.control.starts.load(Ordering::SeqCst);
        for _ in 0..3 {
            let failed = server.double("a", 1.0, "");
            assert_eq!(failed.status, 503, "{}", failed.text);
            assert!(failed.text.contains("no engine today"), "{}", failed.text);
            assert!(failed.header("retry-after").is_some());
        }
        assert_eq!(server.control.starts.load(Ordering::SeqCst), before + 1);
        let health = server.get("/health").json();
        assert!(health["reason"].as_str().unwrap().contains("no engine today"), "{health}");
        assert_eq!(server.get("/v2/models/a/ready").status, 503);
        let load = post(&server, "a", "load");
        assert_eq!(load.status, 500, "{}", load.text);
        assert!(load.text.contains("cannot load `a`"), "{}", load.text);
        server.control.set_starts(StartBehavior::Start);
        assert_eq!(post(&server, "a", "load").status, 200);
        assert_doubled(&server.double("a", 1.0, ""), 1.0);
        assert_eq!(server.get("/health").json()["status"], "healthy", "known: {known}");
        assert_eq!(post(&server, "a", "unload").status, 200);
    }
}

#[test]
fn a_model_that_was_unloaded_is_loaded_again_on_demand_or_by_a_user() {
    for (options, status) in [(ServeOptions::default(), 503), (on_demand(), 200)] {
        let server = serve(&["a"], options);
        assert_doubled(&server.double("a", 1.0, ""), 1.0);
        assert_eq!(post(&server, "a", "unload").status, 200);
        assert_eq!(post(&server, "a", "unload").status, 200, "it is unloaded already");
        assert_eq!(server.control.running().0, 0);
        let index = server.send("POST", "/v2/repository/index", "", "").json();
        assert_eq!(
            index,
            json!([{"name": "a", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}])
        );
        assert_eq!(server.send("POST", "/v2/repository/index", "", r#"{"ready": true}"#).json(), json!([]));
        assert_eq!(server.get("/v2/models/a").json()["inputs"][0]["name"], "x", "metadata stay known");
        assert_eq!(server.get("/v2/models/a/ready").status, status);
        assert_eq!(server.get("/ready").status, status);
        let response = server.double("a", 1.0, "");
        assert_eq!(response.status, status, "{}", response.text);
        assert_eq!(response.text.contains("it was unloaded; load it with POST"), status == 503);
        assert_eq!(post(&server, "a", "load").status, 200);
        assert_doubled(&server.double("a", 1.0, ""), 1.0);
    }
}

#[test]
fn unloading_waits_for_the_requests_of_the_model() {
    let server = Arc::new(TestServer::serve(&["a"], on_demand(), |_| {}));
    let running = server.predict(HELD);
    eventually("the request runs", || server.control.held() == 1);
    let queued = server.predict(4.0);
    eventually("the other one waits", || server.metric("cudock_queue_rows") == 1);
    let unloading = {
        let server = Arc::clone(&server);
        thread::spawn(move || post(&server, "a", "unload").status)
    };
    eventually("it takes no more requests", || server.metric("cudock_models_loaded") == 0);
    server.control.release();
    assert_eq!(unloading.join().unwrap(), 200);
    assert_eq!(running.join().unwrap().0, 200);
    assert_eq!(queued.join().unwrap(), (200, json!([[8.0, 2.0]])));
    assert_eq!(loads(&server, "a"), 1);
}

#[test]
fn models_that_are_kept_loaded_are_loaded_at_the_start_and_stay() {
    let keep_loaded = Some(KeepLoaded::Names(vec!["b".to_owned()]));
    let server = serve(&FIVE, ServeOptions { keep_loaded, ..memory_for(2) });
    assert_eq!((loads(&server, "a"), loads(&server, "b")), (0, 1));
    for model in FIVE {
        assert_doubled(&server.double(model, 1.0, ""), 1.0);
    }
    assert_eq!((loads(&server, "b"), server.control.running()), (1, (2, 2)));
    let kept = post(&server, "b", "unload");
    assert_eq!(kept.status, 409);
    assert!(kept.text.contains("model `b` is kept loaded"), "{}", kept.text);
    assert_eq!(post(&server, "f", "unload").status, 404);
    assert_eq!(status_of(&server, "b")["kept_loaded"], true);
}

#[test]
fn an_idle_model_is_unloaded_and_comes_back() {
    let idle_unload = Some(TimeSpan(std::time::Duration::from_millis(1)));
    let server = serve(&["a", "b"], ServeOptions { idle_unload, ..ServeOptions::default() });
    assert!(loads(&server, "a") == 1 && loads(&server, "b") == 1, "models are loaded at the start");
    for round in 1..=2 {
        eventually("nothing is loaded", || server.metric("cudock_models_loaded") == 0);
        assert_doubled(&server.double("a", 1.0, ""), 1.0);
        eventually("it was unloaded again", || {
            server.metric("cudock_model_unloads_total{model=\"a\"") == round + 1
        });
    }
    assert_eq!(server.get("/ready").status, 200);
}

#[test]
fn a_model_that_cannot_fit_is_refused_with_both_sizes() {
    let server = serve(&["large", "small"], memory_for(1));
    let file = server.models.path().join("large/1/model.onnx");
    std::fs::write(file, vec![b'-'; MODEL_SIZE * 4]).unwrap();
    // The file has changed since it was found.
    assert_eq!(post(&server, "large", "load").status, 500);
    let refused = server.double("large", 1.0, "");
    assert_eq!((refused.status, refused.header("retry-after")), (503, None), "{}", refused.text);
    assert!(refused.text.contains("it needs 2 kB and --model-memory is 1.5 kB"), "{}", refused.text);
    assert_doubled(&server.double("small", 1.0, ""), 1.0);
    assert_eq!(server.get("/ready").status, 200, "other models can be used");
}

#[test]
fn a_model_with_invalid_settings_is_reported_when_it_is_needed() {
    let server = TestServer::serve(&["a"], on_demand(), |settings| {
        settings.model_settings = Arc::new(|_, _| Err("no such setting".to_owned()));
    });
    assert!(server.get("/health").json()["reason"].as_str().unwrap().contains("no such setting"));
    let response = server.double("a", 1.0, "");
    assert_eq!(response.status, 503, "{}", response.text);
    assert!(response.text.contains("no such setting"), "{}", response.text);
}

#[test]
fn metadata_of_a_model_that_was_never_loaded_loads_it() {
    let server = serve(&["a", "b"], on_demand());
    assert_eq!(status_of(&server, "a")["state"], "unloaded");
    assert_eq!(server.get("/v2/models/a/ready").status, 200, "it can be loaded");
    assert_eq!(server.get("/v2/models/a/stats").json(), json!({"model_stats": []}));
    assert_eq!(loads(&server, "a"), 0);
    assert_eq!(server.get("/v2/models/a").json()["versions"], json!(["1"]));
    assert_eq!((loads(&server, "a"), loads(&server, "b")), (1, 0));
    assert_eq!(server.get("/v2/models/a/config").json()["name"], "a");
}

#[test]
fn a_model_is_not_loaded_for_a_client_that_has_left() {
    let server = serve(&["a", "b"], on_demand());
    server.control.set_starts(StartBehavior::Wait);
    let waiting = {
        let server = Arc::clone(&server);
        thread::spawn(move || server.double("a", 1.0, ""))
    };
    eventually("the first model is being loaded", || status_of(&server, "a")["state"] == "loading");
    let held = server.metric("cudock_held_bytes");
    let mut leaving = server.connect();
    let body = json!({ "input": [[1.0, 1.0]] }).to_string();
    leaving.write_all(request("POST", "/predict/b", "", &body).as_bytes()).unwrap();
    eventually("the request is held", || server.metric("cudock_held_bytes") > held);
    drop(leaving);
    eventually("it is dropped", || server.metric("cudock_held_bytes") == held);
    server.control.set_starts(StartBehavior::Start);
    assert_doubled(&waiting.join().unwrap(), 1.0);
    assert_eq!(post(&server, "a", "unload").status, 200);
    assert_eq!(loads(&server, "b"), 0);
}

#[test]
fn a_reload_without_memory_for_both_keeps_the_requests() {
    let server = serve(&["a"], memory_for(1));
    assert_doubled(&server.double("a", 1.0, ""), 1.0);
    server.control.set_starts(StartBehavior::Wait);
    let reloading = {
        let server = Arc::clone(&server);
        thread::spawn(move || post(&server, "a", "load").status)
    };
    eventually("the old engine has ended", || server.control.running().0 == 0);
    let waiting = server.predict(5.0);
    eventually("the request waits", || server.metric("cudock_queue_rows") == 1);
    server.control.set_starts(StartBehavior::Start);
    assert_eq!(reloading.join().unwrap(), 200);
    assert_eq!(waiting.join().unwrap(), (200, json!([[10.0, 2.0]])));
    assert_eq!(server.control.running(), (1, 1));
}

#[test]
fn a_new_model_is_loaded_by_its_name_and_the_others_are_left_alone() {
    let server = serve(&["a", "b"], on_demand());
    assert_doubled(&server.double("a", 1.0, ""), 1.0);
    std::fs::create_dir_all(server.models.path().join("c/1")).unwrap();
    std::fs::write(server.models.path().join("c/1/model.onnx"), "new").unwrap();
    assert_eq!(server.get("/v2/models/c/ready").status, 404);
    assert_eq!(post(&server, "c", "load").status, 200);
    assert_eq!((loads(&server, "a"), loads(&server, "b"), loads(&server, "c")), (1, 0, 1));
}

#[test]
fn a_request_does_not_wait_for_a_model_that_is_gone() {
    let barrier = Arc::new(Barrier::new(2));
    let held = Arc::clone(&barrier);
    let options = ServeOptions { watch: Some(true), ..on_demand() };
    let server = Arc::new(TestServer::serve(&["a", "b"], options, move |settings| {
        let known = Arc::clone(&settings.model_settings);
        settings.model_settings = Arc::new(move |model, file| {
            if model.ends_with("new/1/model.onnx") {
                held.wait();
                held.wait();
            }
            known(model, file)
        });
    }));
    let directory = server.models.path();
    std::fs::rename(directory.join("b"), directory.join("new")).unwrap();
    // Nothing is loaded while the settings of the new model are read.
    barrier.wait();
    let waiting = {
        let server = Arc::clone(&server);
        thread::spawn(move || server.double("b", 1.0, ""))
    };
    eventually("the request waits", || server.metric("cudock_held_bytes") > 0);
    barrier.wait();
    assert_eq!(waiting.join().unwrap().status, 404);
    assert_eq!(loads(&server, "a"), 0);
}

#[test]
fn a_model_whose_file_was_renamed_is_loaded_from_the_new_one() {
    let renamed_is_known = Arc::new(AtomicBool::new(false));
    let started = Arc::new(Mutex::new(Vec::<PathBuf>::new()));
    let (is_known, starts) = (Arc::clone(&renamed_is_known), Arc::clone(&started));
    let options = ServeOptions { watch: Some(true), ..on_demand() };
    let server = TestServer::serve(&["a"], options, move |settings| {
        let known = Arc::clone(&settings.model_settings);
        settings.model_settings = Arc::new(move |model, file| {
            is_known.fetch_or(model.ends_with("renamed.onnx"), Ordering::SeqCst);
            known(model, file)
        });
        let start = Arc::clone(&settings.start_engine);
        settings.start_engine = Arc::new(move |engine, output| {
            starts.lock().unwrap().push(engine.model.clone());
            start(engine, output)
        });
    });
    let directory = server.models.path().join("a/1");
    assert_doubled(&server.double("a", 1.0, ""), 1.0);
    assert_eq!(post(&server, "a", "unload").status, 200);
    std::fs::rename(directory.join("model.onnx"), directory.join("renamed.onnx")).unwrap();
    eventually("the file is found", || renamed_is_known.load(Ordering::SeqCst));
    assert_doubled(&server.double("a", 1.0, ""), 1.0);
    assert_eq!(started.lock().unwrap()[1], directory.join("renamed.onnx"));
}

#[test]
fn a_loaded_model_is_kept_loaded_while_its_settings_are_invalid() {
    let is_invalid = Arc::new(AtomicBool::new(false));
    let invalid = Arc::clone(&is_invalid);
    let options = ServeOptions { keep_loaded: Some(KeepLoaded::All(true)), ..on_demand() };
    let server = TestServer::serve(&["a"], options, move |settings| {
        let known = Arc::clone(&settings.model_settings);
        settings.model_settings = Arc::new(move |model, file| {
            if invalid.load(Ordering::SeqCst) {
                return Err("no such setting".to_owned());
            }
            known(model, file)
        });
    });
    is_invalid.store(true, Ordering::SeqCst);
    assert_eq!(post(&server, "a", "load").status, 500);
    assert_eq!(post(&server, "a", "unload").status, 409);
    assert_doubled(&server.double("a", 1.0, ""), 1.0);
}
