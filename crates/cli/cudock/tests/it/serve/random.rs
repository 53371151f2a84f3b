//! Ten thousand requests at random: every type, every protocol, many sizes, all at once; each answer against what is
//! known to be right, so that no row can have been mixed up with another.

use std::io::Read;

use serde_json::{Value, json};

use crate::serve_support::client::{Ask, Connection, Reply};
use crate::serve_support::made::{Bare, Random, close, f32_bytes, f32_values};
use crate::serve_support::on_threads;
use crate::serve_support::server::Stage;
use crate::serve_support::values::{self, Values};
use cudock_tensor::DType;
use cudock_testkit::onnx;

const REQUESTS: usize = 10_000;
const CONNECTIONS: usize = 16;
const MOST_ROWS: usize = 40;

/// The encoding of a request to a model of one input, and of its response.
#[derive(Clone, Copy, Debug)]
enum Form {
    Predict,
    Npy,
    Protocol,
    Binary,
}

const FORMS: [Form; 4] = [Form::Predict, Form::Npy, Form::Protocol, Form::Binary];

#[test]
fn ten_thousand_random_requests_are_each_answered_right() {
    let Some(stage) = Stage::new() else { return };
    for dtype in DType::ALL {
        stage.write(&format!("models/same_{dtype}.onnx"), &onnx::identity(dtype));
    }
    let mlp = stage.write("models/mlp.onnx", &onnx::mlp());
    stage.write("models/sums.onnx", &onnx::sums());
    let pool = Pool::new(&mut Bare::load(&mlp, &stage.library));
    let server = stage.serve("models", &["--max-batch", "32", "--queue-time", "600s"]);
    on_threads(CONNECTIONS, |number| {
        let mut random = Random::new(1000 + u64::try_from(number).unwrap());
        let mut connection = server.connect();
        for turn in 0..REQUESTS / CONNECTIONS {
            let what = format!("connection {number}, request {turn}");
            match random.below(16) {
                0 => ask_mlp(&mut connection, &mut random, &pool, &what),
                1 => ask_sums(&mut connection, &mut random, &what),
                // The same few types at about the same time, so that requests find mates.
                near => ask_same(
                    &mut connection,
                    &mut random,
                    DType::ALL[(turn / 16 + near % 3) % DType::ALL.len()],
                    &what,
                ),
            }
        }
    });
    let (requests, batches) = (server.metric("cudock_requests_total"), server.metric("cudock_batches_total"));
    assert_eq!(requests, u64::try_from(REQUESTS).unwrap());
    assert!(batches + 100 < requests, "{batches} batches of {requests} requests: hardly a row was shared");
    assert_eq!(server.metric("cudock_failed_total"), 0);
}

/// Some bodies compressed, some responses requested compressed.
fn sent(connection: &mut Connection, random: &mut Random, ask: Ask, what: &str) -> Reply {
    let ask = if random.below(4) == 0 { ask.gzipped() } else { ask };
    let ask = if random.below(4) == 0 { ask.with("accept-encoding", "gzip") } else { ask };
    let mut reply = connection.ask(&ask);
    assert_eq!(reply.status, 200, "{what}: {}", reply.text());
    if reply.header("content-encoding") == Some("gzip") {
        let packed = std::mem::take(&mut reply.body);
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut reply.body).unwrap();
    }
    reply
}

fn ask_same(connection: &mut Connection, random: &mut Random, dtype: DType, what: &str) {
    let form = FORMS[random.below(FORMS.len())];
    let (rows, columns) = (1 + random.below(MOST_ROWS), 4 + random.below(2));
    let given = Values::random(dtype, rows * columns, random);
    let what = format!("{what}: {form:?} {dtype} [{rows}, {columns}]");
    let model = format!("same_{dtype}");
    let head = |more: Value| {
        let mut input = json!({"name": "x", "shape": [rows, columns], "datatype": dtype.protocol_name()});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"id": what, "inputs": [input], "outputs": [{"name": "y"}]})
    };
    let infer = format!("/v2/models/{model}/infer");
    let found = match form {
        Form::Predict => {
            let ask =
                Ask::post(&format!("/predict/{model}"), format!("{{\"input\": {}}}", given.nested(columns)));
            let reply = sent(connection, random, ask, &what).json();
            let prediction = reply["prediction"].as_array().unwrap();
            assert_eq!(prediction.len(), rows, "{what}");
            let flat: Vec<Value> =
                prediction.iter().flat_map(|row| row.as_array().unwrap().clone()).collect();
            Values::from_json(dtype, &flat)
        }
        Form::Npy => {
            let file = values::npy(&given, &[rows, columns]);
            let ask = Ask::post(&format!("/predict/{model}"), file).with("content-type", "application/x-npy");
            // numpy has no strings of their own length: those come back as JSON.
            if dtype == DType::String {
                let reply = sent(connection, random, ask.with("accept", "application/json"), &what).json();
                let rows = reply["prediction"].as_array().unwrap();
                let flat: Vec<Value> = rows.iter().flat_map(|row| row.as_array().unwrap().clone()).collect();
                Values::from_json(dtype, &flat)
            } else {
                let reply = sent(connection, random, ask, &what);
                let (shape, data) = values::from_npy(&reply.body);
                assert_eq!(shape, format!("({rows}, {columns})"), "{what}");
                Values::from_npy_data(dtype, data)
            }
        }
        Form::Protocol => {
            let text = head(json!({})).to_string().replacen(
                "\"shape\"",
                &format!("\"data\": {}, \"shape\"", given.flat()),
                1,
            );
            let reply = sent(connection, random, Ask::post(&infer, text), &what).json();
            assert_eq!(reply["id"], json!(what));
            let output = &reply["outputs"][0];
            assert_eq!((&output["shape"], &output["name"]), (&json!([rows, columns]), &json!("y")), "{what}");
            Values::from_json(dtype, output["data"].as_array().unwrap())
        }
        Form::Binary => {
            let blob = given.blob();
            let mut head = head(json!({"parameters": {"binary_data_size": blob.len()}}));
            head["outputs"][0]["parameters"] = json!({"binary_data": true});
            let head = head.to_string();
            let ask = Ask::post(&infer, [head.as_bytes(), &blob].concat());
            let ask = ask.with("inference-header-content-length", head.len());
            let reply = sent(connection, random, ask, &what);
            let length: usize = reply.header("inference-header-content-length").unwrap().parse().unwrap();
            let (head, data) = reply.body.split_at(length);
            let head: Value = serde_json::from_slice(head).unwrap();
            assert_eq!(head["outputs"][0]["parameters"]["binary_data_size"], data.len(), "{what}");
            Values::from_blob(dtype, data)
        }
    };
    assert_eq!(found, given, "{what}");
}

/// Rows whose results are known from the engine alone.
struct Pool {
    rows: Vec<Vec<f32>>,
    texts: Vec<String>,
    right: Vec<Vec<f32>>,
}

impl Pool {
    fn new(bare: &mut Bare) -> Self {
        let mut random = Random::new(7);
        let rows: Vec<Vec<f32>> = (0..48).map(|_| (0..512).map(|_| random.unit()).collect()).collect();
        let text =
            |row: &Vec<f32>| format!("[{}]", row.iter().map(f32::to_string).collect::<Vec<_>>().join(","));
        let right = rows.iter().map(|row| f32_values(&bare.run(&[1, 512], &f32_bytes(row))[0])).collect();
        Self { texts: rows.iter().map(text).collect(), rows, right }
    }
}

fn ask_mlp(connection: &mut Connection, random: &mut Random, pool: &Pool, what: &str) {
    let picks: Vec<usize> = (0..=random.below(MOST_ROWS)).map(|_| random.below(pool.rows.len())).collect();
    let found: Vec<f32> = if random.below(2) == 0 {
        let body: Vec<u8> = picks.iter().flat_map(|&pick| f32_bytes(&pool.rows[pick])).collect();
        let ask = Ask::post("/predict/mlp", body).with("content-type", "application/octet-stream");
        f32_values(&sent(connection, random, ask, what).body)
    } else {
        let rows: Vec<&str> = picks.iter().map(|&pick| pool.texts[pick].as_str()).collect();
        let ask = Ask::post("/predict/mlp", format!("{{\"input\": [{}]}}", rows.join(",")));
        let reply = sent(connection, random, ask, what).json();
        let rows = reply["prediction"].as_array().unwrap();
        rows.iter().flat_map(|row| values::floats(row.as_array().unwrap())).collect()
    };
    assert_eq!(found.len(), picks.len() * 10, "{what}");
    for (row, &pick) in found.chunks(10).zip(&picks) {
        assert!(close(row, &pool.right[pick]), "{what}: {row:?} for {:?}", pool.right[pick]);
    }
}

fn ask_sums(connection: &mut Connection, random: &mut Random, what: &str) {
    // Whole numbers, so that sums are the same in any order.
    let rows = 1 + random.below(MOST_ROWS);
    let mut numbers = || -> Vec<f32> { (0..rows * 4).map(|_| (random.unit() * 1000.0).round()).collect() };
    let (a, b) = (numbers(), numbers());
    let text =
        |numbers: &[f32]| format!("[{}]", numbers.iter().map(f32::to_string).collect::<Vec<_>>().join(","));
    let sums: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let totals: Vec<f32> = sums.chunks(4).map(|row| row.iter().sum()).collect();
    if random.below(2) == 0 {
        let nested =
            |numbers: &[f32]| format!("[{}]", numbers.chunks(4).map(text).collect::<Vec<_>>().join(","));
        let body = format!("{{\"input\": {{\"b\": {}, \"a\": {}}}}}", nested(&b), nested(&a));
        let reply = sent(connection, random, Ask::post("/predict/sums", body), what).json();
        let column = |name: &str| -> Vec<f32> {
            let rows = reply["prediction"][name].as_array().unwrap();
            rows.iter().flat_map(|row| values::floats(row.as_array().unwrap())).collect()
        };
        assert_eq!((column("sum"), column("total")), (sums, totals), "{what}");
    } else {
        let input = |name: &str, numbers: &[f32]| {
            format!(
                "{{\"name\": \"{name}\", \"datatype\": \"FP32\", \"shape\": [{rows}, 4], \"data\": {}}}",
                text(numbers)
            )
        };
        let body = format!(
            "{{\"inputs\": [{}, {}], \"outputs\": [{{\"name\": \"total\"}}]}}",
            input("a", &a),
            input("b", &b)
        );
        let reply = sent(connection, random, Ask::post("/v2/models/sums/infer", body), what).json();
        let outputs = reply["outputs"].as_array().unwrap();
        assert_eq!((outputs.len(), &outputs[0]["shape"]), (1, &json!([rows, 1])), "{what}");
        assert_eq!(values::floats(outputs[0]["data"].as_array().unwrap()), totals, "{what}");
    }
}
