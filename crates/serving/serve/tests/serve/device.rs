//! A device that has too little memory, or is gone.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cudock_project::{DeviceChoice, ServeOptions};
use serde_json::json;

use crate::engine::{FATAL, StartBehavior};
use crate::support::{TestServer, eventually};

#[test]
fn a_batch_that_does_not_fit_runs_in_parts_and_limits_later_ones() {
    let server = TestServer::start(|_| {});
    server.control.too_many_rows.store(4, Ordering::SeqCst);
    let input: Vec<[f64; 2]> = (0..10).map(|row| [f64::from(row), 1.0]).collect();
    let doubled: Vec<[f64; 2]> = (0..10).map(|row| [2.0 * f64::from(row), 2.0]).collect();
    let response = server.send("POST", "/predict", "", &json!({ "input": input }).to_string());
    assert_eq!((response.status, &response.json()["prediction"]), (200, &json!(doubled)));
    // Of ten rows, five do not fit either, and two do.
    assert_eq!(server.metric("cudock_split_batches_total"), 1);
    assert_eq!(server.metric("cudock_max_batch_rows"), 2);
    let model = server.get("/status").json()["models"][0].clone();
    assert_eq!((&model["max_batch"], &model["batch_limit"]), (&json!(32), &json!(2)));
}

#[test]
fn a_row_that_does_not_fit_is_413() {
    let server = TestServer::start(|_| {});
    server.control.too_many_rows.store(1, Ordering::SeqCst);
    let response = server.send("POST", "/predict", "", r#"{"input": [[1, 2], [3, 4]]}"#);
    assert_eq!(response.status, 413, "{}", response.text);
    assert!(response.text.contains("needs more memory than the device has free"), "{}", response.text);
    assert_eq!(server.get("/ready").status, 200);
}

#[test]
fn without_a_required_gpu_requests_get_503_until_it_is_back() {
    let options =
        ServeOptions { device: Some(DeviceChoice::Cuda), require_gpu: Some(true), ..ServeOptions::default() };
    let server = Arc::new(TestServer::serve(&["double"], options, |_| {}));
    server.control.set_starts(StartBehavior::WithoutGpu);
    assert_eq!(server.predict(FATAL).join().unwrap().0, 503);
    let response = server.send("POST", "/predict", "", r#"{"input": [[1, 2]]}"#);
    assert_eq!(response.status, 503);
    assert!(
        response.text.contains("a GPU is required and not used: Cuda: fell off the bus"),
        "{}",
        response.text
    );
    assert_eq!(server.get("/ready").status, 503);
    server.control.set_starts(StartBehavior::Start);
    eventually("the GPU is used again", || server.get("/ready").status == 200);
    assert_eq!(server.predict(1.0).join().unwrap(), (200, json!([[2.0, 2.0]])));
}
