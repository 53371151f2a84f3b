//! Directories of models: their own settings, changed files, and unreadable files.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use cudock_tensor::DType;
use cudock_testkit::onnx::OnnxModel;

use crate::serve_support::client::Ask;
use crate::serve_support::made::times;
use crate::serve_support::server::{Server, Stage, copy_environment, eventually};

const ROW: &str = r#"{"input": [[1, 1, 1, 1]]}"#;

/// The model's result for 1; `None` if it is not served.
fn factor(server: &Server, path: &str) -> Option<f64> {
    let reply = server.ask(&Ask::post(path, ROW));
    (reply.status == 200).then(|| reply.json()["prediction"][0][0].as_f64().unwrap())
}

#[test]
fn each_model_of_a_directory_may_have_settings_of_its_own() {
    let Some(stage) = Stage::new() else { return };
    for name in ["own", "plain", "listens"] {
        stage.write(&format!("models/{name}/model.onnx"), &times(2.0));
    }
    stage.write("models/own/cudock.toml", b"[serve]\nmax_batch = 3\n");
    stage.write("models/listens/cudock.toml", b"[serve]\nlisten = [\"127.0.0.1:1\"]\n");
    let server = stage.serve("models", &[]);
    assert_eq!(server.model_status("own")["max_batch"], 3);
    assert_eq!(server.model_status("plain")["max_batch"], 32);
    let refused = server.ask(&Ask::post("/predict/listens", ROW));
    assert_eq!(refused.status, 503);
    assert!(refused.text().contains("`listen` is a setting of the whole server"), "{}", refused.text());
    stage.swap("models/own/cudock.toml", b"[serve]\nmax_batch = 5\n");
    assert_eq!(server.reload("own"), 200);
    assert_eq!(server.model_status("own")["max_batch"], 5);
}

#[test]
fn ready_names_the_models_that_answer_and_no_name_writes_a_line_of_its_own() {
    let Some(stage) = Stage::new() else { return };
    stage.write("models/good/model.onnx", &times(2.0));
    stage.write("models/also good.onnx", &times(3.0));
    stage.write("models/broken.onnx", b"not a model");
    stage.write("models/invalid/model.onnx", &times(2.0));
    stage.write("models/invalid/cudock.toml", b"[serve]\nmax_batsh = 1\n");
    stage.write("models/a\nready all: open http:/model.onnx", &times(2.0));
    let server = stage.serve("models", &[]);
    let log = server.log();
    let ready: Vec<&str> = log.lines().filter(|line| line.starts_with("ready ")).collect();
    assert!(ready.len() == 1 && ready[0].starts_with("ready also good, good: open "), "{log}");
    assert!(log.contains(r#"models not read error="cannot serve a model as"#), "{log}");
    assert_eq!(factor(&server, "/predict/good"), Some(2.0));
    let names = server.health().1["models"].as_array().unwrap().len();
    assert_eq!(names, 2);
}

#[test]
fn a_broken_version_does_not_keep_the_others_from_being_reloaded() {
    let Some(stage) = Stage::new() else { return };
    stage.write("models/m/1/model.onnx", &times(1.0));
    stage.write("models/m/2/model.onnx", &times(2.0));
    let server = stage.serve("models", &[]);
    stage.swap("models/m/1/model.onnx", b"not a model");
    stage.swap("models/m/2/model.onnx", &times(4.0));
    assert_eq!(server.reload("m"), 500, "the broken version is reported");
    assert_eq!(factor(&server, "/predict/m/2"), Some(4.0), "the other version is loaded");
    assert_eq!(factor(&server, "/predict/m/1"), Some(1.0), "the model before goes on");
}

#[test]
fn a_load_with_parameters_is_refused_and_not_half_done() {
    let Some(stage) = Stage::new() else { return };
    stage.write("m.onnx", &times(2.0));
    let server = stage.serve("m.onnx", &[]);
    let load = |body: &str| server.ask(&Ask::post("/v2/repository/models/m/load", body));
    assert_eq!(load(r#"{"parameters": {}}"#).status, 200);
    for body in [r#"{"parameters": {"config": "{}"}}"#, r#"{"parameters": {"file:1/model.onnx": "AA=="}}"#] {
        let reply = load(body);
        assert_eq!(reply.status, 400, "{}", reply.text());
        assert!(reply.text().contains("unsupported load parameter"), "{}", reply.text());
    }
    assert_eq!(load("not json").status, 400);
}

#[test]
fn sighup_loads_each_version_once() {
    let Some(stage) = Stage::new() else { return };
    for version in 1..=3 {
        stage.write(&format!("models/m/{version}/model.onnx"), &times(2.0));
    }
    let server = stage.serve("models", &[]);
    let loads = || server.log().lines().filter(|line| line.contains("model ready")).count();
    eventually("three versions are loaded", || loads() == 3);
    stage.write("models/new.onnx", &times(7.0));
    server.signal("HUP");
    eventually("a model that is new is loaded too", || factor(&server, "/predict/new") == Some(7.0));
    // Reloads wait for each other, so this one comes after all of the first.
    assert_eq!(server.reload("new"), 200);
    assert_eq!(loads(), 3 + 4 + 1);
}

#[test]
fn a_watched_file_of_weights_beside_the_model_is_followed() {
    let Some(stage) = Stage::new() else { return };
    let model = OnnxModel::new("times")
        .input("x", DType::F32, &[None, Some(4)])
        .external("factor", DType::F32, &[1], "weights.bin")
        .node("Mul", &["x", "factor"], &["y"], &[])
        .output("y", DType::F32, &[None, Some(4)])
        .bytes();
    stage.write("models/m/model.onnx", &model);
    stage.write("models/m/weights.bin", &2.0_f32.to_le_bytes());
    let server = stage.serve("models", &["--watch"]);
    assert_eq!(factor(&server, "/predict"), Some(2.0));
    stage.swap("models/m/weights.bin", &3.0_f32.to_le_bytes());
    eventually("the new weights are used", || factor(&server, "/predict") == Some(3.0));
}

#[test]
fn the_last_model_of_a_watched_directory_can_go_and_come_back() {
    let Some(stage) = Stage::new() else { return };
    stage.write("models/m.onnx", &times(2.0));
    let server = stage.serve("models", &["--watch"]);
    std::fs::remove_file(stage.path("models/m.onnx")).unwrap();
    eventually("it is gone", || server.ask(&Ask::post("/predict/m", ROW)).status == 404);
    assert_eq!(server.get("/ready").status, 503);
    stage.write("models/m.onnx", &times(5.0));
    eventually("it is back", || factor(&server, "/predict/m") == Some(5.0));
}

#[test]
fn a_directory_that_cannot_be_read_does_not_keep_the_others_from_being_served() {
    let Some(stage) = Stage::new() else { return };
    stage.write("models/m.onnx", &times(2.0));
    stage.write("models/lost+found/1/model.onnx", &times(2.0));
    let closed = stage.path("models/lost+found");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let server = stage.serve_as("models", &[], |command| without_capabilities(&command));
    assert_eq!(factor(&server, "/predict"), Some(2.0));
    assert!(server.log().contains("lost+found"), "{}", server.log());
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The same command without the right to read what its modes forbid, which root has.
fn without_capabilities(command: &Command) -> Command {
    let is_root = std::fs::read_to_string("/proc/self/status").unwrap().contains("Uid:\t0\t");
    let mut changed = Command::new(if is_root { "setpriv".as_ref() } else { command.get_program() });
    if is_root {
        changed.args(["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override"]);
        changed.arg(command.get_program());
    }
    changed.args(command.get_args());
    copy_environment(command, &mut changed);
    changed
}

#[test]
fn a_server_that_finds_its_engine_needs_no_home_and_writes_nothing() {
    let Some(stage) = Stage::new() else { return };
    stage.write("m.onnx", &times(2.0));
    let server = stage.serve_as("m.onnx", &[], |mut command| {
        for name in ["HOME", "XDG_CACHE_HOME", "CUDOCK_CACHE"] {
            command.env_remove(name);
        }
        command
    });
    assert_eq!(factor(&server, "/predict"), Some(2.0));
    let server = stage.serve_as("m.onnx", &[], |mut command| {
        command.env("HOME", "/proc/nowhere").env_remove("XDG_CACHE_HOME").env_remove("CUDOCK_CACHE");
        command
    });
    assert_eq!(factor(&server, "/predict"), Some(2.0));
}
