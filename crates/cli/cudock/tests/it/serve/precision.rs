//! `--precision` and `--require-gpu`.

use std::path::Path;

use serde_json::Value;

use crate::serve_support::client::Ask;
use crate::serve_support::made::times;
use crate::serve_support::server::Stage;
use crate::support::{code, shown};

#[test]
fn a_model_in_fp16_answers_as_in_fp32_and_reports_the_difference() {
    let Some(stage) = Stage::new() else { return };
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/digits/model.onnx");
    stage.write("digits.onnx", &std::fs::read(digits).unwrap());
    let row: Vec<usize> = (0..64).map(|pixel| pixel % 17).collect();
    let body = serde_json::json!({ "input": [row] }).to_string();
    let scores = |arguments: &[&str]| {
        let server = stage.serve("digits.onnx", arguments);
        let answer = server.ask(&Ask::post("/predict", body.as_bytes()));
        let scores: Vec<f64> = serde_json::from_value(answer.json()["prediction"][0].clone()).unwrap();
        (scores, server.ask(&Ask::get("/health")).json()["models"][0]["precision"].clone())
    };
    let (expected, report) = scores(&[]);
    assert_eq!(report, Value::Null);
    let (found, report) = scores(&["--precision", "fp16"]);
    assert!(
        expected.iter().zip(&found).all(|(one, other)| (one - other).abs() < 0.005),
        "{expected:?} {found:?}"
    );
    assert_eq!((&report["used"], &report["reason"]), (&"fp16".into(), &Value::Null), "{report}");
    assert!(report["difference"]["max_relative"].as_f64().unwrap() < 0.01, "{report}");
    assert_eq!(report["difference"]["same_result"], 1.0);
}

#[test]
fn bf16_is_not_for_onnx_models() {
    let Some(stage) = Stage::new() else { return };
    let file = stage.write("double.onnx", &times(2.0));
    let arguments = ["serve", file.to_str().unwrap(), "--device", "cpu", "--offline", "--precision", "bf16"];
    let output = stage.command(&arguments).output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("precision bf16 is for PyTorch models"), "{}", shown(&output));
}

#[test]
fn a_required_gpu_that_is_missing_is_exit_3_with_a_hint() {
    if Path::new("/dev/nvidiactl").exists() {
        cudock_testkit::missing("no-gpu", "this machine has a GPU");
        return;
    }
    let Some(stage) = Stage::new() else { return };
    let file = stage.write("double.onnx", &times(2.0));
    for device in ["auto", "cpu", "cuda"] {
        let arguments = [
            "serve",
            file.to_str().unwrap(),
            "--device",
            device,
            "--offline",
            "--port",
            "0",
            "--require-gpu",
        ];
        let output = stage.command(&arguments).output().unwrap();
        let text = shown(&output);
        assert_eq!(code(&output), 3, "{device}: {text}");
        assert!(text.contains("a GPU is required") && text.contains("cudock doctor"), "{device}: {text}");
    }
}
