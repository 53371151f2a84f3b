//! Which rows share batches, and batches that nobody waits for.

use cudock_tensor::DType;
use cudock_testkit::onnx::{self, Attribute, OnnxModel};
use serde_json::{Value, json};

use crate::serve_support::client::Ask;
use crate::serve_support::made::{f32_bytes, f32_values};
use crate::serve_support::server::{Server, Stage, eventually};
use crate::serve_support::{occupy, receive_all, send_all, until_queued};

/// A softmax over the rows of a batch: `x` and `y` F32 [rows, 2].
fn softmax_over_rows() -> Vec<u8> {
    OnnxModel::new("softmax")
        .input("x", DType::F32, &[None, Some(2)])
        .node("Softmax", &["x"], &["y"], &[Attribute::Int("axis", 0)])
        .output("y", DType::F32, &[None, Some(2)])
        .bytes()
}

/// Sends two requests that wait together for an engine that is held still.
fn two_at_once(server: &Server) -> Vec<Value> {
    let held = server.hold_engine();
    let mut first = occupy(server, &Ask::predict("[[1, 1]]"));
    let mut waiting = send_all(server, &[Ask::predict("[[0, 0]]"), Ask::predict("[[5, 5]]")]);
    until_queued(server, 2);
    drop(held);
    first.receive().unwrap().ok();
    receive_all(&mut waiting).into_iter().map(|reply| reply.ok().json()["prediction"].clone()).collect()
}

#[test]
fn rows_that_depend_on_each_other_never_share_a_batch() {
    let Some(stage) = Stage::new() else { return };
    stage.write("softmax.onnx", &softmax_over_rows());
    let server = stage.serve("softmax.onnx", &["--queue-time", "60s"]);
    assert!(server.log().contains("rows depend "), "{}", server.log());
    assert_eq!(two_at_once(&server), [json!([[1.0, 1.0]]), json!([[1.0, 1.0]])]);
    let own = server.ask(&Ask::predict("[[0, 0], [0, 0]]")).ok().json();
    assert_eq!(own["prediction"], json!([[0.5, 0.5], [0.5, 0.5]]), "a client's own rows stay together");
    // One row needs no row dimension, as with other models, in any format.
    assert_eq!(server.ask(&Ask::predict("[3, 4]")).ok().json()["prediction"], json!([1.0, 1.0]));
    let raw = Ask::post("/predict", f32_bytes(&[0.0; 4])).with("content-type", "application/octet-stream");
    assert_eq!(f32_values(&server.ask(&raw).ok().body), [0.5; 4]);
}

#[test]
fn batch_true_lets_rows_share_batches_all_the_same() {
    let Some(stage) = Stage::new() else { return };
    stage.write("models/softmax/model.onnx", &softmax_over_rows());
    stage.write("models/softmax/cudock.toml", b"[serve]\nbatch = true\n");
    let server = stage.serve("models", &["--queue-time", "60s"]);
    assert!(server.log().contains("rows depend "), "{}", server.log());
    assert_ne!(two_at_once(&server), [json!([[1.0, 1.0]]), json!([[1.0, 1.0]])]);
}

#[test]
fn ordinary_models_are_not_taken_for_ones_whose_rows_depend() {
    let Some(stage) = Stage::new() else { return };
    let models =
        [("mlp", onnx::mlp()), ("conv", onnx::conv()), ("gather", onnx::gather()), ("sums", onnx::sums())];
    for (name, bytes) in &models {
        stage.write(&format!("models/{name}.onnx"), bytes);
    }
    stage.write("models/text.onnx", &onnx::identity(DType::String));
    let server = stage.serve("models", &[]);
    assert!(!server.log().contains("rows depend "), "{}", server.log());
}

#[test]
fn an_input_without_a_shape_takes_any_and_is_not_a_scalar() {
    let Some(stage) = Stage::new() else { return };
    let model = OnnxModel::new("any")
        .unranked_input("x", DType::F32)
        .node("Identity", &["x"], &["y"], &[])
        .output("y", DType::F32, &[None, None])
        .bytes();
    stage.write("any.onnx", &model);
    let server = stage.serve("any.onnx", &[]);
    let reply = server.ask(&Ask::predict("[[1, 2, 3], [4, 5, 6]]")).ok().json();
    assert_eq!(reply["prediction"], json!([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]));
}

#[test]
fn a_batch_that_nobody_waits_for_is_stopped_and_the_engine_lives_on() {
    let Some(stage) = Stage::new() else { return };
    stage.write("spin.onnx", &onnx::spin());
    let server = stage.serve("spin.onnx", &["--queue-time", "60s"]);
    let engine = server.engine();
    let endless = Ask::predict("[[1000000000000]]").with("x-timeout-ms", 100);
    assert_eq!(server.ask(&endless).status, 504);
    server.ask(&Ask::predict("[[3]]")).ok();
    // Also when its client disconnects.
    let mut leaver = server.connect();
    leaver.send(&Ask::predict("[[1000000000000]]")).unwrap();
    eventually("it runs", || {
        server.metric("cudock_held_bytes") > 0 && server.metric("cudock_queue_rows") == 0
    });
    drop(leaver);
    server.ask(&Ask::predict("[[3]]")).ok();
    assert_eq!(server.engine(), engine, "the engine was not replaced");
}

#[test]
fn models_of_other_formats_are_refused_with_the_way_to_export_them() {
    let Some(stage) = Stage::new() else { return };
    for (what, export) in
        [("model.ckpt", "torch.onnx.export"), ("model.keras", "model.export"), ("model.tflite", "tf2onnx")]
    {
        stage.write(what, b"");
        let output = stage.command(&["serve", what, "--device", "cpu", "--offline"]).output().unwrap();
        let text = crate::support::shown(&output);
        assert_eq!(crate::support::code(&output), 2, "{what}: {text}");
        assert!(text.contains("hint: export it first") && text.contains(export), "{what}: {text}");
    }
}
