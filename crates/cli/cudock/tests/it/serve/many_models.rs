//! Models that share memory: loaded when they are needed, unloaded when others need the memory.

use serde_json::Value;

use crate::serve_support::client::Ask;
use crate::serve_support::made::{Random, times};
use crate::serve_support::on_threads;
use crate::serve_support::server::{Server, Stage, eventually, resident};
use crate::support::{code, schema, shown};

const MODELS: usize = 5;

/// A stage with models named by their factors.
fn models(stage: &Stage) {
    for factor in 1..=MODELS {
        stage.write(&format!("models/{factor}.onnx"), &times(number(factor)));
    }
}

fn number(factor: usize) -> f32 {
    f32::from(u8::try_from(factor).unwrap())
}

/// Sends a number to a model, whose response is its factor times the number.
fn ask(factor: usize, value: usize) -> Ask {
    Ask::post(&format!("/predict/{factor}"), format!("{{\"input\": [[{value}, 0, 0, 0]]}}"))
}

#[track_caller]
fn check(server: &Server, factor: usize, value: usize) {
    let reply = server.ask(&ask(factor, value)).ok();
    let expected = f64::from(number(factor)) * f64::from(u32::try_from(value).unwrap());
    assert_eq!(reply.json()["prediction"][0][0].as_f64(), Some(expected));
}

/// Memory of one loaded model, as the server measures it.
fn memory_of_one(stage: &Stage) -> u64 {
    let server = stage.serve("models", &["--model-memory", "1TB"]);
    check(&server, 1, 1);
    eventually("it is measured", || server.model_status("1")["memory"].is_u64());
    let memory = server.model_status("1")["memory"].as_u64().unwrap();
    let engine = resident(server.engine());
    assert!(memory > engine / 2 && memory < engine * 2, "{memory} is not near {engine}");
    memory
}

#[test]
fn many_clients_of_five_models_share_the_memory_of_two() {
    let Some(stage) = Stage::alone() else { return };
    models(&stage);
    let budget = (memory_of_one(&stage) * 5 / 2).to_string() + "B";
    let server = stage.serve("models", &["--model-memory", &budget, "--queue-time", "60s"]);
    assert_eq!(server.engines().len(), 0);
    on_threads(8, |client| {
        let mut random = Random::new(client as u64);
        let mut connection = server.connect();
        for _ in 0..25 {
            let (factor, value) = (random.below(MODELS) + 1, random.below(1000));
            let reply = connection.ask(&ask(factor, value)).ok().json();
            let expected = f64::from(number(factor)) * f64::from(u32::try_from(value).unwrap());
            assert_eq!(reply["prediction"][0][0].as_f64(), Some(expected));
        }
    });
    let loaded = server.engines().len();
    assert!((1..=2).contains(&loaded), "{loaded} engines");
    let (loads, unloads) =
        (server.metric("cudock_model_loads_total"), server.metric("cudock_model_unloads_total"));
    assert!(loads >= MODELS as u64 && loads == unloads + loaded as u64, "{loads} loads, {unloads} unloads");
    for factor in 1..=MODELS {
        server.ask(&Ask::post(&format!("/v2/repository/models/{factor}/unload"), "")).ok();
    }
    assert_eq!(server.engines().len(), 0, "an engine is a process, so all of its memory is free");
    assert_eq!(server.metric("cudock_model_memory_bytes"), 0);
}

#[test]
fn a_model_that_turns_out_too_large_is_refused_from_then_on() {
    let Some(stage) = Stage::new() else { return };
    models(&stage);
    // The file has a few hundred bytes, but an engine needs more.
    let server = stage.serve("models", &["--gpu-memory-budget", "1MB"]);
    eventually("its memory is known", || {
        let reply = server.ask(&ask(1, 1));
        reply.status == 503 && reply.text().contains("--model-memory is 1 MB")
    });
    let loads = server.metric("cudock_model_loads_total");
    assert_eq!(server.ask(&ask(1, 1)).status, 503);
    assert_eq!((server.metric("cudock_model_loads_total"), server.engines().len()), (loads, 0));
}

#[test]
fn a_file_that_changes_while_its_model_is_unloaded_is_used() {
    let Some(stage) = Stage::new() else { return };
    models(&stage);
    let server = stage.serve("models", &["--on-demand"]);
    check(&server, 2, 10);
    server.ask(&Ask::post("/v2/repository/models/2/unload", "")).ok();
    stage.swap("models/2.onnx", &times(7.0));
    let reply = server.ask(&ask(2, 10)).ok();
    assert_eq!(reply.json()["prediction"][0][0], 70.0);
}

#[test]
fn sighup_reloads_what_is_loaded_and_nothing_else() {
    let Some(stage) = Stage::new() else { return };
    models(&stage);
    let server = stage.serve("models", &["--on-demand"]);
    check(&server, 2, 10);
    stage.swap("models/2.onnx", &times(7.0));
    stage.write("models/6.onnx", &times(6.0));
    server.signal("HUP");
    eventually("the new file is used", || server.ask(&ask(2, 10)).ok().json()["prediction"][0][0] == 70.0);
    eventually("a new model is served", || server.get("/v2/models/6/ready").status == 200);
    assert_eq!((server.metric("cudock_model_loads_total"), server.engines().len()), (2, 1));
    check(&server, 6, 10);
}

#[test]
fn the_command_lists_loads_and_unloads_models() {
    let Some(stage) = Stage::new() else { return };
    models(&stage);
    let server = stage.serve("models", &["--on-demand", "--keep-loaded", "3"]);
    let url = format!("http://{}", server.address);
    let models = |arguments: &[&str]| {
        schema::output(&mut stage.command(&[&["models"], arguments, &["--url", &url]].concat()))
    };
    let state_in = |output: &std::process::Output, name: &str| {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let row = text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        row.and_then(|row| row.split_whitespace().nth(2).map(str::to_owned))
    };
    let all = models(&[]);
    assert_eq!(code(&all), 0, "{}", shown(&all));
    let states = ["1", "2", "3"].map(|name| state_in(&all, name).unwrap());
    assert_eq!(states, ["unloaded", "unloaded", "ready"]);
    let loaded = models(&["load", "2"]);
    assert_eq!(state_in(&loaded, "2").as_deref(), Some("ready"), "{}", shown(&loaded));
    assert_eq!(server.engines().len(), 2);
    let unloaded = models(&["unload", "2", "--format", "json"]);
    let report: Value = serde_json::from_slice(&unloaded.stdout).unwrap();
    assert_eq!((&report["schema"], &report["models"][0]["state"]), (&1.into(), &"unloaded".into()));
    assert_eq!(server.engines().len(), 1);
    let kept = models(&["unload", "3"]);
    assert_eq!(code(&kept), 2);
    assert!(shown(&kept).contains("model `3` is kept loaded"), "{}", shown(&kept));
    let unknown = models(&["load", "33"]);
    assert_eq!(code(&unknown), 2);
    assert!(shown(&unknown).contains("did you mean `3`"), "{}", shown(&unknown));
}
