//! Responses hold the engine's own results.

use crate::serve_support::client::Ask;
use crate::serve_support::made::{Bare, Random, close, f32_bytes, f32_values};
use crate::serve_support::on_threads;
use crate::serve_support::server::Stage;
use cudock_testkit::onnx;

fn raw(body: &[u8]) -> Ask {
    Ask::post("/predict", body).with("content-type", "application/octet-stream")
}

fn rows(random: &mut Random, count: usize, width: usize) -> Vec<f32> {
    (0..count * width).map(|_| random.unit()).collect()
}

#[test]
fn a_batch_served_is_bit_for_bit_the_bare_engines() {
    let Some(stage) = Stage::new() else { return };
    for (name, model, row) in [("mlp", onnx::mlp(), vec![512]), ("conv", onnx::conv(), vec![3, 32, 32])] {
        let file = stage.write(&format!("{name}.onnx"), &model);
        let mut bare = Bare::load(&file, &stage.library);
        let server = stage.serve(&format!("{name}.onnx"), &["--max-batch", "32"]);
        let mut connection = server.connect();
        let mut random = Random::new(1);
        let sizes = [1, 2, 3, 8, 17, 32];
        for count in sizes {
            let input = f32_bytes(&rows(&mut random, count, row.iter().product()));
            let shape = [vec![count], row.clone()].concat();
            let reply = connection.ask(&raw(&input)).ok();
            assert_eq!(reply.body, bare.run(&shape, &input)[0], "{name}, {count} rows");
        }
        let batches = server.status()["batch_sizes"].clone();
        let ran: Vec<_> = batches.as_array().unwrap().iter().map(|size| size["rows"].clone()).collect();
        assert_eq!(ran, sizes.map(serde_json::Value::from), "each request was a batch of its own");
    }
}

#[test]
fn rows_that_shared_a_batch_come_back_as_the_engine_gives_them() {
    let Some(stage) = Stage::new() else { return };
    let file = stage.write("mlp.onnx", &onnx::mlp());
    let mut bare = Bare::load(&file, &stage.library);
    let mut random = Random::new(2);
    let requests: Vec<Vec<f32>> = (0..16).map(|number| rows(&mut random, 1 + number % 5, 512)).collect();
    let right: Vec<Vec<f32>> = requests
        .iter()
        .map(|rows| f32_values(&bare.run(&[rows.len() / 512, 512], &f32_bytes(rows))[0]))
        .collect();
    let server = stage.serve("mlp.onnx", &["--max-batch", "32"]);
    on_threads(16, |number| {
        let mut connection = server.connect();
        for _ in 0..20 {
            let reply = connection.ask(&raw(&f32_bytes(&requests[number]))).ok();
            assert!(close(&f32_values(&reply.body), &right[number]), "request {number}");
        }
    });
    let (batches, requests) = (server.metric("cudock_batches_total"), server.metric("cudock_requests_total"));
    assert!(
        requests == 320 && batches < requests,
        "{batches} batches of {requests} requests: none was shared"
    );
}

#[test]
fn one_row_is_answered_as_one_row_and_many_as_many() {
    let Some(stage) = Stage::new() else { return };
    stage.write("sums.onnx", &onnx::sums());
    let server = stage.serve("sums.onnx", &[]);
    let one = server.ask(&Ask::predict(r#"{"a": [1, 2, 3, 4], "b": [10, 20, 30, 40]}"#)).ok().json();
    assert_eq!(one["prediction"]["sum"], serde_json::json!([11.0, 22.0, 33.0, 44.0]));
    assert_eq!(one["prediction"]["total"], serde_json::json!([110.0]));
    assert_eq!(one["device"], "cpu");
    let many = server.ask(&Ask::predict(r#"{"a": [[1, 2, 3, 4]], "b": [[10, 20, 30, 40]]}"#)).ok().json();
    assert_eq!(many["prediction"]["total"], serde_json::json!([[110.0]]));
    let mixed = server.ask(&Ask::predict(r#"{"a": [[1, 2, 3, 4]], "b": [10, 20, 30, 40]}"#));
    assert_eq!(mixed.status, 400, "{}", mixed.text());
}

#[test]
fn a_long_answer_is_compressed_for_a_client_that_takes_it() {
    let Some(stage) = Stage::new() else { return };
    stage.write("tiny.onnx", &onnx::tiny());
    let server = stage.serve("tiny.onnx", &[]);
    let input = raw(&f32_bytes(&rows(&mut Random::new(3), 32, 64)));
    let plain = server.ask(&input).ok();
    assert_eq!(plain.header("content-encoding"), None);
    let packed = server.ask(&input.with("accept-encoding", "gzip")).ok();
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut unpacked = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed.body.as_slice()), &mut unpacked)
        .unwrap();
    assert_eq!(unpacked, plain.body);
}
