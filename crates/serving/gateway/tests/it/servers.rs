//! The gateway in front of the requests and answers of the servers that people run.

use cudock_testkit::client::{eventually, post};
use cudock_testkit::http::{Reply, Request};
use serde_json::{Value, json};

use crate::support::{JSON, gated};

/// A server: how it is set up, the request for each of three rows, and what it answers to these rows in one request.
struct ServerForm {
    name: &'static str,
    options: &'static str,
    path: &'static str,
    /// The request for one row, as a list of one.
    request: fn(u32) -> Value,
    /// The answer to a list of rows.
    answer: fn(&[u32]) -> Value,
    /// How many requests the server gets for three that wait behind another one.
    calls: usize,
}

/// They share a batch.
const BATCHED: usize = 1;
/// The first request has shown that its form cannot be split: it is sent again, and the others by themselves.
const ONE_BY_ONE: usize = 1 + 3;
/// They are forwarded from the beginning.
const FORWARDED: usize = 3;

fn values(rows: &[u32]) -> Vec<Value> {
    rows.iter().map(|row| json!([row, 0.5])).collect()
}

const SERVERS: [ServerForm; 13] = [
    ServerForm {
        name: "cudock serve",
        options: "",
        path: "/predict",
        request: |row| json!({ "input": [[row]] }),
        answer: |rows| json!({ "prediction": values(rows), "device": "cpu" }),
        calls: BATCHED,
    },
    ServerForm {
        name: "cudock serve with labels",
        options: "",
        path: "/predict",
        request: |row| json!({ "input": [[row]] }),
        answer: |rows| {
            let label = |row: &u32| json!([{ "label": format!("c{row}"), "score": 0.9 }, { "label": "dog", "score": 0.1 }]);
            let labels: Vec<Value> = rows.iter().map(label).collect();
            json!({ "prediction": values(rows), "device": "cpu", "labels": labels })
        },
        calls: BATCHED,
    },
    ServerForm {
        name: "cudock serve with several outputs",
        options: "",
        path: "/predict",
        request: |row| json!({ "input": [[row]] }),
        answer: |rows| json!({ "prediction": { "boxes": values(rows), "classes": rows }, "device": "cpu" }),
        calls: BATCHED,
    },
    ServerForm {
        name: "a Flask server whose labels are the names of its classes",
        options: "",
        path: "/predict",
        request: |row| json!({ "input": [[row]] }),
        answer: |rows| json!({ "prediction": values(rows), "device": "cpu", "labels": ["cat", "dog", "cow"] }),
        calls: ONE_BY_ONE,
    },
    ServerForm {
        name: "the same with --shared-key",
        options: "shared_keys = ['labels']",
        path: "/predict",
        request: |row| json!({ "input": [[row]] }),
        answer: |rows| json!({ "prediction": values(rows), "device": "cpu", "labels": ["cat", "dog", "cow"] }),
        calls: BATCHED,
    },
    ServerForm {
        name: "TorchServe",
        options: "path = '/predictions/m'\ninput_key = 'data'",
        path: "/predictions/m",
        request: |row| json!({ "data": [[row]] }),
        answer: |rows| json!(values(rows)),
        calls: BATCHED,
    },
    ServerForm {
        name: "TensorFlow Serving by rows",
        options: "path = '/v1/models/m:predict'\ninput_key = 'instances'",
        path: "/v1/models/m:predict",
        request: |row| json!({ "signature_name": "serving_default", "instances": [[row]] }),
        answer: |rows| json!({ "predictions": values(rows) }),
        calls: BATCHED,
    },
    ServerForm {
        name: "TensorFlow Serving by rows with several outputs",
        options: "path = '/v1/models/m:predict'\ninput_key = 'instances'\nrow_rank = 0",
        path: "/v1/models/m:predict",
        request: |row| json!({ "instances": [{ "x": [row] }] }),
        answer: |rows| {
            let row = |row: &u32| json!({ "boxes": [[row]], "classes": [row, row] });
            json!({ "predictions": rows.iter().map(row).collect::<Vec<_>>() })
        },
        calls: BATCHED,
    },
    ServerForm {
        name: "Vertex AI",
        options: "path = '/predict'\ninput_key = 'instances'",
        path: "/predict",
        request: |row| json!({ "instances": [[row]] }),
        answer: |rows| json!({ "predictions": values(rows), "deployedModelId": "7", "modelVersionId": "1" }),
        calls: BATCHED,
    },
    ServerForm {
        name: "TensorFlow Serving by columns, whose outputs need not have rows",
        options: "path = '/v1/models/m:predict'\ninput_key = 'inputs'",
        path: "/v1/models/m:predict",
        request: |row| json!({ "inputs": [[row]] }),
        answer: |rows| json!({ "outputs": { "scores": values(rows), "classes": ["cat", "dog"] } }),
        calls: ONE_BY_ONE,
    },
    ServerForm {
        name: "the same where they have, with --output-key",
        options: "path = '/v1/models/m:predict'\ninput_key = 'inputs'\noutput_keys = ['outputs']",
        path: "/v1/models/m:predict",
        request: |row| json!({ "inputs": [[row]] }),
        answer: |rows| json!({ "outputs": { "scores": values(rows), "classes": rows } }),
        calls: BATCHED,
    },
    ServerForm {
        name: "Triton",
        options: "path = '/v2/models/m/infer'",
        path: "/v2/models/m/infer",
        request: tensors,
        answer: |rows| json!({ "model_name": "m", "outputs": [tensor("y", rows)] }),
        calls: FORWARDED,
    },
    ServerForm {
        name: "Triton, as if its tensors were rows",
        options: "path = '/v2/models/m/infer'\ninput_key = 'inputs'\nrow_rank = 0",
        path: "/v2/models/m/infer",
        request: tensors,
        answer: |rows| json!({ "model_name": "m", "outputs": [tensor("y", rows)] }),
        calls: ONE_BY_ONE,
    },
];

fn tensor(name: &str, rows: &[u32]) -> Value {
    json!({ "name": name, "datatype": "UINT32", "shape": [rows.len(), 1], "data": rows })
}

fn tensors(row: u32) -> Value {
    json!({ "inputs": [tensor("x", &[row])] })
}

/// The rows of a request of any form: all numbers of its rows.
fn rows(request: &Request) -> Vec<u32> {
    fn numbers(value: &Value, found: &mut Vec<u32>) {
        match value {
            Value::Number(number) => found.push(u32::try_from(number.as_u64().unwrap()).unwrap()),
            Value::Array(items) => items.iter().for_each(|item| numbers(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| numbers(field, found)),
            _ => {}
        }
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let key =
        ["input", "data", "instances", "inputs"].into_iter().find(|key| body.get(key).is_some()).unwrap();
    let mut found = Vec::new();
    match body[key].get(0).and_then(|tensor| tensor.get("data")) {
        Some(data) => numbers(data, &mut found),
        None => numbers(&body[key], &mut found),
    }
    found
}

#[test]
fn each_client_gets_its_own_rows_from_every_server() {
    for server in &SERVERS {
        let (name, answered) = (server.name, server.answer);
        let options = format!("health_path = '/'\n{}", server.options);
        let (upstream, gateway, gate) = gated(&options, move |request| match request.method.as_str() {
            "POST" => {
                let body = answered(&rows(request)).to_string();
                Reply::new(200, body).with("content-type", "application/json")
            }
            _ => Reply::new(200, ""),
        });
        let ask = |row| {
            let mut client = gateway.connect();
            client.write(&post(server.path, JSON, (server.request)(row).to_string().as_bytes()));
            client
        };
        let posts = || upstream.requests().iter().filter(|request| request.method == "POST").count();
        let mut first = ask(70);
        eventually("the first request is with the server", || posts() == 1);
        let mut clients: Vec<_> = (71..74).map(ask).collect();
        if server.calls != FORWARDED {
            gateway.until("upstream_queue_rows", 3);
        }
        gate.open(100);
        for (row, client) in (70..).zip([&mut first].into_iter().chain(&mut clients)) {
            let response = client.receive();
            let body: Value = serde_json::from_slice(&response.body).unwrap();
            assert_eq!((response.status, body), (200, answered(&[row])), "{name}");
        }
        assert_eq!(posts(), 1 + server.calls, "{name}");
    }
}
