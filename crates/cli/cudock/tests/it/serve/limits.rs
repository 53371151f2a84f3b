//! Limits that hold: descriptors, connections, memory, and the time of the threads that serve everybody.

use std::io::{Read, Write};
use std::thread::sleep;
use std::time::Duration;

use crate::serve_support::client::{Ask, Connection};
use crate::serve_support::made::{f32_bytes, times};
use crate::serve_support::server::{Server, Stage, eventually, most_resident, signal};
use crate::serve_support::{occupy, on_threads};
use cudock_tensor::DType;
use cudock_testkit::onnx::{self, OnnxModel};

const ROW: &str = "[[1, 2, 3, 4]]";
const MIB: usize = 1 << 20;

#[track_caller]
fn answers(server: &Server) {
    let reply = server.ask(&Ask::predict(ROW)).ok();
    assert_eq!(reply.json()["prediction"][0][3], 8.0);
}

fn idle(server: &Server, count: usize) -> Vec<Connection> {
    (0..count).map(|_| server.connect()).collect()
}

fn open(connections: &[Connection]) -> usize {
    connections.iter().filter(|connection| !connection.is_closed()).count()
}

/// A head that announces this many bytes of body.
fn head(bytes: usize) -> String {
    format!("POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: {bytes}\r\n\r\n")
}

#[test]
fn a_server_out_of_descriptors_keeps_its_engine_and_serves_newcomers() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve_under("ulimit -n 128", "double.onnx", &[]);
    let engine = server.engine();
    let connections = idle(&server, 400);
    for _ in 0..50 {
        answers(&server);
    }
    assert!(open(&connections) < 128, "{} of 400 idle connections in 128 descriptors", open(&connections));
    assert!(connections[0].is_closed(), "the one that was idle longest goes first");
    assert_eq!((server.engine(), server.metric("cudock_engine_restarts_total")), (engine, 0));
    // The reserved descriptors are enough to start another engine.
    signal(engine, "KILL");
    eventually("the engine is replaced", || server.metric("cudock_engine_restarts_total") == 1);
    answers(&server);
    drop(connections);
}

#[test]
fn a_low_soft_limit_of_descriptors_is_raised() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve_under("ulimit -Sn 128", "double.onnx", &[]);
    let engine = server.engine();
    let connections = idle(&server, 300);
    answers(&server);
    assert_eq!(open(&connections), 300);
    assert_eq!((server.engine(), server.metric("cudock_engine_restarts_total")), (engine, 0));
}

#[test]
fn at_the_connection_limit_idle_connections_make_room_and_busy_ones_stay() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--connections", "8", "--queue-time", "60s"]);
    let held = server.hold_engine();
    let mut busy = occupy(&server, &Ask::predict(ROW));
    let mut half_sent = server.connect();
    half_sent.stream.write_all(head(10).as_bytes()).unwrap();
    let connections = idle(&server, 20);
    for _ in 0..20 {
        server.get("/live").ok();
    }
    assert!(open(&connections) < 8, "{} idle connections at a limit of 8", open(&connections));
    assert!(!half_sent.is_closed(), "a request on its way is not idle");
    drop(held);
    busy.receive().unwrap().ok();
    half_sent.stream.write_all(b"not JSON!!").unwrap();
    assert_eq!(half_sent.receive().unwrap().status, 400);
}

#[test]
fn half_sent_requests_lock_nobody_out() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--memory", "64MiB", "--max-body", "60MiB"]);
    // The announced bodies would fill the memory many times over; the sent bytes do not.
    let mut announced: Vec<Connection> = idle(&server, 64);
    for connection in &mut announced {
        connection.stream.write_all(head(50 * MIB).as_bytes()).unwrap();
        connection.stream.write_all(b"{").unwrap();
    }
    eventually("all of them are being read", || server.metric("cudock_held_bytes") >= 64);
    assert!(server.metric("cudock_held_bytes") < MIB as u64);
    answers(&server);
    server.get("/ready").ok();
    drop(announced);
    // Those that send their whole bodies take the available memory, but not all of it.
    let part = vec![b' '; 4 * MIB];
    let mut sent: Vec<Connection> = idle(&server, 24);
    for connection in &mut sent {
        connection.stream.write_all(head(50 * MIB).as_bytes()).unwrap();
        // A refused one may be closed while it sends.
        let _ = connection.stream.write_all(&part);
    }
    eventually("some of them are refused", || server.metric("cudock_refused_total") > 0);
    answers(&server);
    server.get("/ready").ok();
    drop(sent);
    eventually("their memory is given back", || server.metric("cudock_held_bytes") == 0);
}

#[test]
fn a_server_that_refuses_everybody_is_not_ready_and_counts_its_refusals() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    // With batches of one, exactly one request leaves the queue for the engine.
    let server = stage.serve("double.onnx", &["--memory", "1MiB", "--queue-time", "60s", "--max-batch", "1"]);
    let held = server.hold_engine();
    let ask = Ask::predict(&format!("[[1, 2, 3, 4{}]]", " ".repeat(16_000)));
    let mut waiting = Vec::new();
    let mut refused = 0;
    for number in 0..40 {
        let mut connection = server.connect();
        connection.send(&ask).unwrap();
        let counted = || server.status()["queue"]["requests"].as_u64().unwrap();
        eventually("it is taken or refused", || {
            refused = server.metric("cudock_refused_total");
            counted() + refused >= number
        });
        waiting.push(connection);
    }
    assert!(refused > 0);
    assert_eq!(server.get("/ready").status, 503);
    assert_eq!(server.get("/v2/health/ready").status, 503);
    let (status, health) = server.health();
    assert_eq!((status, health["status"].as_str()), (503, Some("unhealthy")), "{health}");
    server.get("/live").ok();
    drop(held);
    let statuses: Vec<u16> = waiting.iter_mut().map(|one| one.receive().unwrap().status).collect();
    let full = statuses.iter().filter(|status| **status == 429).count() as u64;
    assert_eq!(full, server.metric("cudock_refused_total"), "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
    eventually("it is ready again", || server.get("/ready").status == 200);
}

#[test]
fn a_body_that_keeps_trickling_is_a_408() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--client-timeout", "1s"]);
    let mut connection = server.connect();
    connection.stream.write_all(head(100_000).as_bytes()).unwrap();
    let mut sent = 0;
    while !connection.is_closed() && sent < 600 {
        // Never a pause as long as the timeout, and never an end.
        if connection.stream.write_all(b"  ").is_err() {
            break;
        }
        sent += 1;
        sleep(Duration::from_millis(100));
        let mut byte = [0];
        connection.stream.set_nonblocking(true).unwrap();
        let answered = connection.stream.peek(&mut byte).is_ok_and(|count| count > 0);
        connection.stream.set_nonblocking(false).unwrap();
        if answered {
            break;
        }
    }
    assert_eq!(connection.receive().unwrap().status, 408);
    eventually("its memory is given back", || server.metric("cudock_held_bytes") == 0);
}

/// A request in HTTP/1.1 whose body is sent in chunks of unknown total.
fn chunked(body: &[u8]) -> Vec<u8> {
    let mut bytes =
        b"POST /predict HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(MIB) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[test]
fn memory_stays_within_the_budget_whatever_clients_send() {
    let Some(stage) = Stage::alone() else { return };
    stage.write("double.onnx", &times(2.0));
    let server =
        stage.serve("double.onnx", &["--memory", "64MiB", "--max-body", "60MiB", "--queue-rows", "10000000"]);
    answers(&server);
    let rows = format!("{{\"input\": [{}[1,2,3,4]]}}", "[1,2,3,4],".repeat(5 * MIB));
    let blanks = vec![b' '; 55 * MIB];
    let raw = |size: usize| {
        Ask::post("/predict", vec![0; size * MIB]).with("content-type", "application/octet-stream")
    };
    let attacks: Vec<Vec<u8>> = vec![
        chunked(&blanks),
        chunked(rows.as_bytes()),
        Ask::post("/predict", blanks.clone()).gzipped().bytes(),
        Ask::post("/predict", rows.clone().into_bytes()).gzipped().bytes(),
        Ask::post("/predict", rows.clone().into_bytes()).bytes(),
        raw(50).bytes(),
        raw(12).bytes(),
    ];
    let statuses = on_threads(14, |number| {
        let mut statuses = Vec::new();
        for turn in 0..2 {
            let mut connection = server.connect();
            let bytes = &attacks[(number + turn) % attacks.len()];
            // A refused one is answered and closed while it sends.
            let _ = connection.stream.write_all(bytes);
            statuses.push(connection.receive().map_or(0, |reply| reply.status));
        }
        statuses
    });
    answers(&server);
    // Requests that fit are answered, whatever else came.
    server.ask(&raw(12)).ok();
    eventually("all memory is given back", || server.metric("cudock_held_bytes") == 0);
    let most = most_resident(server.pid());
    eprintln!("{} MiB at most; {statuses:?}", most / MIB as u64);
    assert!(most <= (64 + 64) * MIB as u64, "{most} bytes; {statuses:?}");
    assert!(statuses.iter().flatten().all(|status| [0, 200, 400, 413, 429].contains(status)), "{statuses:?}");
    assert_eq!(server.metric("cudock_engine_restarts_total"), 0);
}

/// Makes a long row of each number: `x` F32 [rows, 1], `y` F32 [rows, 500,000].
fn long_outputs() -> Vec<u8> {
    let width = 500_000;
    OnnxModel::new("long")
        .input("x", DType::F32, &[None, Some(1)])
        .floats("ones", &[1, width], &vec![1.0; width])
        .node("MatMul", &["x", "ones"], &["y"], &[])
        .output("y", DType::F32, &[None, Some(width)])
        .bytes()
}

#[test]
fn memory_stays_within_the_budget_however_long_outputs_are() {
    let Some(stage) = Stage::alone() else { return };
    stage.write("long.onnx", &long_outputs());
    let arguments = ["--memory", "64MiB", "--queue-time", "60s", "--max-batch", "32"];
    let server = stage.serve("long.onnx", &arguments);
    let statuses = on_threads(32, |number| {
        let mut statuses = Vec::new();
        for format in ["application/json", "application/octet-stream", "application/x-npy"] {
            let reply = server.ask(&Ask::predict(&format!("[{number}]")).with("accept", format));
            if reply.status == 200 {
                let value = format!("{number}.0");
                let is_right = match format {
                    "application/json" => reply.text().matches(&value).count() >= 500_000,
                    _ => reply
                        .body
                        .ends_with(&f32_bytes(&vec![f32::from(u8::try_from(number).unwrap()); 500_000])),
                };
                assert!(is_right, "{format}: {number}");
            }
            statuses.push(reply.status);
        }
        statuses
    });
    eventually("all memory is given back", || server.metric("cudock_held_bytes") == 0);
    let most = most_resident(server.pid());
    eprintln!("{} MiB at most; {statuses:?}", most / MIB as u64);
    assert!(most <= (64 + 64) * MIB as u64, "{most} bytes; {statuses:?}");
    let count = |wanted| statuses.iter().flatten().filter(|status| **status == wanted).count();
    assert_eq!(count(200) + count(429), 32 * 3, "{statuses:?}");
    assert!(count(200) > 0 && count(429) > 0, "{statuses:?}");
    // A request that can never fit gets an error.
    assert_eq!(server.ask(&Ask::predict(&format!("[{}]", vec!["[1]"; 40].join(",")))).status, 413);
}

/// How many others are answered before these requests are.
fn answered_meanwhile(server: &Server, asks: &[Ask]) -> usize {
    let mut slow: Vec<Connection> = idle(server, asks.len());
    for (connection, ask) in slow.iter_mut().zip(asks) {
        connection.send(ask).unwrap();
    }
    let mut other = server.connect();
    let mut count = 0;
    let waits = |connection: &mut Connection| {
        connection.stream.set_nonblocking(true).unwrap();
        let waits = connection.stream.peek(&mut [0]).is_err();
        connection.stream.set_nonblocking(false).unwrap();
        waits
    };
    while slow.iter_mut().any(waits) {
        other.ask(&Ask::predict(ROW)).ok();
        count += 1;
    }
    count
}

#[test]
fn others_are_served_while_large_and_compressed_bodies_are_read() {
    let Some(stage) = Stage::alone() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--io-threads", "1"]);
    // The error is at the end, so that all of it is read and the engine has nothing to do.
    let large =
        Ask::post("/predict", format!("{{\"input\": [{}[5]]}}", "[1.25,2,3,4],".repeat(24 * MIB / 13)));
    let count = answered_meanwhile(&server, &[large]);
    assert!(count >= 10, "{count} requests were answered while one of 24 MiB was read");
    let bomb = Ask::post("/predict", vec![b' '; 60 * MIB]).gzipped();
    assert!(bomb.bytes().len() < MIB);
    let count = answered_meanwhile(&server, &vec![bomb; 8]);
    assert!(count >= 10, "{count} requests were answered while eight bombs were unpacked");
}

#[test]
fn a_large_answer_that_is_read_slowly_is_not_cut() {
    let Some(stage) = Stage::new() else { return };
    stage.write("same.onnx", &onnx::identity(DType::F32));
    let server = stage.serve("same.onnx", &["--client-timeout", "1s", "--queue-time", "60s"]);
    let numbers = 10 * MIB;
    let header = format!(
        r#"{{"inputs": [{{"name": "x", "shape": [1, {numbers}], "datatype": "FP32",
            "parameters": {{"binary_data_size": {}}}}}], "parameters": {{"binary_data_output": true}}}}"#,
        numbers * 4
    );
    let body = [header.as_bytes(), &f32_bytes(&vec![0.5; numbers])].concat();
    let ask = Ask::post("/v2/models/same/infer", body).with("inference-header-content-length", header.len());
    let mut connection = server.connect();
    connection.send(&ask).unwrap();
    let (mut read, mut buffer) = (0, vec![0; MIB]);
    // Several times as long as a client may stall, but never still for that long.
    while read < numbers * 4 {
        let count = connection.stream.read(&mut buffer).unwrap();
        assert!(count > 0, "cut after {read} bytes");
        read += count;
        if read < 30 * MIB {
            sleep(Duration::from_millis(20));
        }
    }
    eventually("its memory is given back", || server.metric("cudock_held_bytes") == 0);
}

#[test]
fn a_request_that_never_came_does_not_keep_the_server_from_ending() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let mut server = stage.serve("double.onnx", &["--drain-timeout", "600s", "--client-timeout", "600s"]);
    let mut half_heads: Vec<Connection> = idle(&server, 4);
    for (connection, part) in
        half_heads.iter_mut().zip(["", "POST /pre", "PRI * HT", "GET / HTTP/1.1\r\nhost: x\r\n"])
    {
        connection.stream.write_all(part.as_bytes()).unwrap();
    }
    let mut half_body = server.connect();
    half_body.stream.write_all(head(100).as_bytes()).unwrap();
    half_body.stream.write_all(b"{").unwrap();
    eventually("the body is being read", || server.metric("cudock_held_bytes") > 0);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    assert!(server.log().contains("connections_left=0"), "{}", server.log());
}

#[test]
fn counts_that_no_machine_can_serve_are_refused_at_once() {
    let Some(stage) = Stage::new() else { return };
    let model = stage.write("double.onnx", &times(2.0));
    for (flag, value) in [("--max-batch", "99999999999"), ("--lanes", "100000"), ("--io-threads", "100000")] {
        let arguments = ["serve", model.to_str().unwrap(), "--offline", "--device", "cpu", flag, value];
        let output = stage.command(&arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(flag) && stderr.contains("hint:"), "{stderr}");
    }
}
