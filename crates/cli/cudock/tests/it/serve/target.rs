//! A latency target makes batches as small as it needs.

use serde_json::Value;

use crate::serve_support::made::heavy;
use crate::serve_support::server::Stage;
use crate::support::{code, json, schema, shown};

/// Mean rows of a batch under the load of many clients, and the load generator's report.
fn mean_batch(stage: &Stage, arguments: &[&str]) -> (f64, Value) {
    let server =
        stage.serve("heavy.onnx", &[&["--max-batch", "64", "--queue-time", "60s"], arguments].concat());
    let url = format!("http://{}", server.address);
    let arguments = [
        "bench",
        &url,
        "-c",
        "96",
        "--duration",
        "3s",
        "--warm-up",
        "1s",
        "--check-every",
        "0",
        "--format",
        "json",
    ];
    let output = schema::output(&mut stage.command(&arguments));
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let totals = server.status()["totals"].clone();
    let mean = totals["rows"].as_f64().unwrap() / totals["batches"].as_f64().unwrap();
    (mean, json(&output)["runs"][0].clone())
}

#[test]
fn a_latency_target_shrinks_batches() {
    let Some(stage) = Stage::alone() else { return };
    stage.write("heavy.onnx", &heavy());
    let (free, free_run) = mean_batch(&stage, &[]);
    // A target that a batch of the freely chosen size would nearly use up.
    let free_p50 = free_run["latency"]["p50_ms"].as_f64().unwrap();
    let target = format!("{}ms", (free_p50 / 4.0).ceil());
    let (bound, bound_run) = mean_batch(&stage, &["--latency-target", &target]);
    let bound_p50 = bound_run["latency"]["p50_ms"].as_f64().unwrap();
    eprintln!(
        "without a target {free:.1} rows a batch, p50 {free_p50:.1} ms; with one of {target} {bound:.1} rows, p50 {bound_p50:.1} ms"
    );
    assert!(free > 16.0, "{free:.1} rows a batch: the load was too small to show anything");
    assert!(bound < 0.75 * free, "{bound:.1} rows a batch with a target, {free:.1} without");
}
