//! `cudock bench --tune` with real servers.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Output, Stdio};

use cudock_project::Project;
use cudock_testkit::process::wait_until_gone;
use serde_json::Value;

use crate::serve_support::client::Ask;
use crate::serve_support::made::times;
use crate::serve_support::server::{Stage, children, signal};
use crate::support::{code, json, schema, shown};

/// Measurements as short as they can be, on the CPU.
const SHORT: [&str; 10] =
    ["--device", "cpu", "--offline", "--duration", "100ms", "--warm-up", "20ms", "-c", "4,16", "--threads=1"];

const MANIFEST: &str = "\
name = 'digits'

[workload]
model = 'model.onnx'

[serve]
max_batch = 2 # for a start
queue_time = '2s'

[serve.try]
range = [0, 16]
";

fn tune(stage: &Stage, path: &str, arguments: &[&str]) -> Output {
    schema::output(&mut stage.command(&[&["bench", "--tune", path], &SHORT[..], arguments].concat()))
}

fn digits() -> Option<Stage> {
    let stage = Stage::new()?;
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/digits/model.onnx");
    stage.write("digits/model.onnx", &fs::read(model).unwrap());
    stage.write("digits/cudock.toml", MANIFEST.as_bytes());
    Some(stage)
}

#[test]
fn settings_that_are_written_are_served() {
    let Some(stage) = digits() else { return };
    let arguments =
        ["--axis", "max_batch=2,64", "--axis", "lanes=1,2", "--time", "20s", "--write", "--format", "json"];
    let output = tune(&stage, "digits", &arguments);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let report = json(&output);
    let trials = report["trials"].as_array().unwrap();
    let tried = |settings: &Value| trials.iter().any(|trial| trial["settings"] == *settings);
    assert!(tried(&report["current"]["settings"]) && tried(&report["best"]["settings"]), "{report}");
    assert!(trials.iter().any(|trial| trial["final"] == true), "the best are measured again");
    assert!(trials.iter().all(|trial| trial["error"].is_null()), "{report}");

    let text = fs::read_to_string(stage.path("digits/cudock.toml")).unwrap();
    assert!(
        text.starts_with("name = 'digits'\n") && text.ends_with("\n[serve.try]\nrange = [0, 16]\n"),
        "{text}"
    );
    assert_eq!(report["written"], text != MANIFEST);
    let serve = Project::open(&stage.path("digits")).unwrap().manifest.serve;
    let best = &report["best"]["settings"];
    // The default of 32 rows is none of the values.
    assert_eq!(serve.max_batch.map(Value::from).as_ref(), best.get("max_batch"), "{text}");
    assert_eq!(serve.lanes.map(Value::from).as_ref(), best.get("lanes"), "{text}");
    let server = stage.serve("digits", &[]);
    let row: Vec<u8> = vec![0; 256];
    let ask = Ask::post("/predict", row).with("content-type", "application/octet-stream");
    assert_eq!(server.ask(&ask).status, 200);
}

#[test]
fn the_text_fits_a_screen_and_nothing_is_written_by_default() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let arguments = ["--axis", "lanes=1,2", "--time", "10s", "--plot", "tune.svg"];
    let output = tune(&stage, "double.onnx", &arguments);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.starts_with("best: ") && text.contains(" rows/s with "), "{text}");
    assert!(text.contains("rows/s       p99  clients  settings\n"), "{text}");
    // One line for the hint.
    assert!(text.lines().count() < 24 && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("+[workload]\n+model = \"double.onnx\"\n"), "{text}");
    assert!(!stage.path("cudock.toml").exists());
    assert!(fs::read_to_string(stage.path("tune.svg")).unwrap().contains("rows per second by p99 latency"));
}

#[test]
fn a_target_that_nothing_meets_is_a_no() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let arguments = ["--axis", "lanes=1,2", "--time", "5s", "--latency-target", "1us"];
    let output = tune(&stage, "double.onnx", &arguments);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    assert!(shown(&output).contains("missed: no settings keep p99 within 0.001 ms"), "{}", shown(&output));
}

#[test]
fn a_grid_measures_every_combination() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let arguments = ["--axis", "lanes=1,2", "--axis", "max_batch=8,32", "--grid", "--format", "json"];
    let output = tune(&stage, "double.onnx", &arguments);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let report = json(&output);
    let explored = report["trials"].as_array().unwrap().iter().filter(|trial| trial["final"] == false);
    assert_eq!(explored.count(), 2 * 2 * 2, "{report}");
}

#[test]
fn a_model_that_cannot_be_served_is_an_error_with_the_reason() {
    let Some(stage) = Stage::new() else { return };
    stage.write("text.onnx", b"this is no model");
    let output = tune(&stage, "text.onnx", &[]);
    assert_eq!(code(&output), 3, "{}", shown(&output));
    let text = shown(&output);
    assert!(
        text.contains("cannot serve text.onnx: ") && text.contains("hint: `cudock serve text.onnx`"),
        "{text}"
    );
    for (arguments, problem) in [
        (["--tune", "missing.onnx"], "missing.onnx not found"),
        (["--tune", "."], "is a directory of models"),
    ] {
        let output = stage.command(&[&["bench"], &arguments[..]].concat()).output().unwrap();
        assert_eq!(code(&output), 2, "{}", shown(&output));
        assert!(shown(&output).contains(problem), "{}", shown(&output));
    }
    let output = tune(&stage, "text.onnx", &["--axis", "nhwc"]);
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(
        shown(&output).contains("hint: name `threads`, `lanes`, `max_batch` or `sessions`"),
        "{}",
        shown(&output)
    );
}

/// A search that has measured two of its trials, and its progress.
fn begun(stage: &Stage) -> (Child, Lines<BufReader<ChildStderr>>) {
    stage.write("double.onnx", &times(2.0));
    let arguments =
        [&["bench", "--tune", "double.onnx", "--time", "10m", "--format", "json"], &SHORT[..]].concat();
    let mut command = stage.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap()).lines();
    // The third trial begins after two were measured.
    let third = progress.by_ref().map_while(Result::ok).filter(|line| line.contains(" clients")).nth(2);
    assert!(third.is_some_and(|line| line.contains("best so far")));
    (child, progress)
}

#[test]
fn a_search_that_is_killed_leaves_no_server() {
    let Some(stage) = Stage::new() else { return };
    let (mut child, _progress) = begun(&stage);
    let servers = children(child.id());
    let engines: Vec<u32> = servers.iter().flat_map(|server| children(*server)).flat_map(children).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    servers.into_iter().chain(engines).for_each(wait_until_gone);
}

#[test]
fn an_interrupted_search_ends_its_server_and_reports() {
    let Some(stage) = Stage::new() else { return };
    let (child, progress) = begun(&stage);
    let servers = children(child.id());
    signal(child.id(), "INT");
    for _ in progress.map_while(Result::ok) {}
    let output = child.wait_with_output().unwrap();
    let report = json(&output);
    assert_eq!(code(&output), 0, "{report}");
    assert_eq!(report["interrupted"], true);
    assert!(report["trials"].as_array().unwrap().len() >= 2, "{report}");
    for server in servers {
        wait_until_gone(server);
    }
}
