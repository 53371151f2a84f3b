//! Clients that are slow, wrong or out to harm.

use std::io::{Read, Write};
use std::thread::sleep;
use std::time::Duration;

use crate::serve_support::client::{Ask, Connection};
use crate::serve_support::made::{f32_bytes, times};
use crate::serve_support::send_all;
use crate::serve_support::server::{Server, Stage, eventually, resident};
use cudock_tensor::DType;
use cudock_testkit::onnx;

const ROW: &str = "[[1, 2, 3, 4]]";

#[track_caller]
fn answers(server: &Server) {
    server.ask(&Ask::predict(ROW)).ok();
}

/// Sends bytes one by one until the server closes the connection. Returns the whole response.
fn trickle(server: &Server, bytes: &[u8]) -> String {
    let mut connection = server.connect();
    for byte in bytes.iter().cycle().take(600) {
        if connection.is_closed() || connection.stream.write_all(&[*byte]).is_err() {
            break;
        }
        answers(server);
        sleep(Duration::from_millis(100));
    }
    assert!(connection.is_closed(), "a minute later it still listens");
    let mut response = Vec::new();
    let _ = connection.stream.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

#[test]
fn a_head_that_comes_byte_by_byte_is_cut_off_while_others_are_served() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--client-timeout", "1s"]);
    let endless = format!("POST /predict HTTP/1.1\r\nx-filler: {}", "a".repeat(600));
    trickle(&server, endless.as_bytes());
    // The first letters of HTTP/2's greeting, and nothing more.
    for greeting in [&b""[..], b"P", b"PRI * HT"] {
        let mut connection = server.connect();
        connection.stream.write_all(greeting).unwrap();
        eventually(
            &format!("a client that says `{}` and no more is dropped", greeting.escape_ascii()),
            || {
                answers(&server);
                connection_is_over(&connection)
            },
        );
    }
}

/// Whether the server has closed, with or without a response.
fn connection_is_over(connection: &Connection) -> bool {
    let mut copy = connection.stream.try_clone().unwrap();
    copy.set_nonblocking(true).unwrap();
    let over = loop {
        match copy.read(&mut [0; 1024]) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) => break error.kind() != std::io::ErrorKind::WouldBlock,
        }
    };
    copy.set_nonblocking(false).unwrap();
    over
}

#[test]
fn a_body_that_stops_coming_is_a_408() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--client-timeout", "1s"]);
    let whole = Ask::predict(ROW).bytes();
    let mut connection = server.connect();
    connection.stream.write_all(&whole[..whole.len() - 5]).unwrap();
    answers(&server);
    let reply = connection.receive().unwrap();
    assert_eq!(reply.status, 408, "{}", reply.text());
    assert_eq!(server.metric("cudock_rows_total"), 1, "half a request was run");
    eventually("its memory is given back", || server.metric("cudock_held_bytes") == 0);
}

#[test]
fn a_client_that_does_not_read_its_answer_is_dropped_while_others_are_served() {
    let Some(stage) = Stage::new() else { return };
    stage.write("same.onnx", &onnx::identity(DType::F32));
    let server = stage.serve("same.onnx", &["--client-timeout", "1s", "--queue-time", "60s"]);
    let numbers = 6 << 20;
    let header = format!(
        r#"{{"inputs": [{{"name": "x", "shape": [1, {numbers}], "datatype": "FP32",
            "parameters": {{"binary_data_size": {}}}}}], "parameters": {{"binary_data_output": true}}}}"#,
        numbers * 4
    );
    let body = [header.as_bytes(), &f32_bytes(&vec![0.5; numbers])].concat();
    let ask = Ask::post("/v2/models/same/infer", body).with("inference-header-content-length", header.len());
    let whole = server.ask(&ask).ok();
    assert!(whole.body.len() > numbers * 4);
    let mut kept = Vec::new();
    for round in 1..=3 {
        let mut slow = send_all(&server, &vec![ask.clone(); 4]);
        let made = 24 * round - 19;
        eventually("their answers are made", || server.metric("cudock_requests_total") >= made);
        // Nothing is read for longer than the server waits; others do not notice.
        for _ in 0..20 {
            server.ask(&Ask::predict("[[1, 2]]")).ok();
            sleep(Duration::from_millis(150));
        }
        for connection in &mut slow {
            let whole = connection.receive().map(|reply| reply.body.len());
            assert!(
                whole.is_err(),
                "the server kept {whole:?} bytes for a client that did not come for them"
            );
        }
        kept.push(resident(server.pid()));
    }
    // Responses that were kept would add 96 MiB at every round; the memory that the allocator keeps does not grow each time.
    let grown = kept.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min().unwrap();
    assert!(grown < 48 << 20, "{kept:?} bytes after each four clients that did not read");
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--max-body", "64KiB"]);
    let mut connection = server.connect();
    let claim = "POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n{";
    connection.stream.write_all(claim.as_bytes()).unwrap();
    let reply = connection.receive().unwrap();
    assert_eq!(reply.status, 413, "{}", reply.text());
    assert!(reply.text().contains("65536"), "{}", reply.text());

    // One without a length.
    let mut connection = server.connect();
    connection
        .stream
        .write_all(b"POST /predict HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    let chunk = [b"4000\r\n".to_vec(), vec![b' '; 0x4000], b"\r\n".to_vec()].concat();
    for _ in 0..16 {
        if connection.stream.write_all(&chunk).is_err() {
            break;
        }
    }
    let reply = connection.receive().unwrap();
    assert_eq!(reply.status, 413, "{}", reply.text());

    // One that is small until it is decompressed.
    let bomb = Ask::post("/predict", vec![b' '; 1 << 20]).gzipped();
    assert!(bomb.bytes().len() < 64 << 10);
    assert_eq!(server.ask(&bomb).status, 413);
    assert_eq!(server.ask(&Ask::predict(&format!("[{}]", "[1, 2, 3, 4], ".repeat(8000)))).status, 413);
    answers(&server);
    assert_eq!(server.metric("cudock_held_bytes"), 0);
}

#[test]
fn requests_beyond_the_memory_given_are_refused() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server =
        stage.serve("double.onnx", &["--max-body", "1MiB", "--memory", "4MiB", "--queue-rows", "1000000"]);
    let held = server.hold_engine();
    let large = Ask::post("/predict", vec![0; 900_000]).with("content-type", "application/octet-stream");
    let mut waiting: Vec<Connection> = Vec::new();
    let refused = loop {
        let mut connection = server.connect();
        connection.send(&large).unwrap();
        waiting.push(connection);
        assert!(waiting.len() < 10, "ten requests of a megabyte fit into four");
        sleep(Duration::from_millis(50));
        let probe = server.ask(&large.clone().with("x-timeout-ms", 200));
        if probe.status == 429 {
            break probe;
        }
    };
    assert!(refused.header("retry-after-ms").is_some());
    assert!(server.metric("cudock_held_bytes") <= 4 << 20);
    drop(held);
    for connection in &mut waiting {
        let reply = connection.receive().unwrap();
        assert!(matches!(reply.status, 200 | 429), "{} {}", reply.status, reply.text());
    }
    eventually("there is room again", || server.metric("cudock_held_bytes") == 0);
    server.ask(&large).ok();
}

#[test]
fn an_unknown_request_is_refused_with_the_right_status() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &[]);
    let picture = Ask::predict(ROW).with("content-type", "image/png");
    let brotli = Ask::predict(ROW).with("content-encoding", "br");
    let not_gzip = Ask::predict(ROW).with("content-encoding", "gzip");
    let wants_xml = Ask::predict(ROW).with("accept", "application/xml");
    let not_npy = Ask::post("/predict", "not npy").with("content-type", "application/x-npy");
    let raw =
        |bytes: usize| Ask::post("/predict", vec![0; bytes]).with("content-type", "application/octet-stream");
    let protocol = |body: &str| Ask::post("/v2/models/double/infer", body);
    for (what, ask, status, word) in [
        ("a picture", picture, 415, "takes no images"),
        ("an unknown compression", brotli, 415, "br"),
        ("a compression that is none", not_gzip, 400, "decompress"),
        ("an answer nobody writes", wants_xml, 406, "application/xml"),
        ("a file that is no .npy", not_npy, 400, "not a .npy file"),
        ("seven bytes", raw(7), 400, "row size 16"),
        ("no bytes", raw(0), 400, "row size 16"),
        ("a model with a slip in its name", Ask::post("/predict/doubel", "{}"), 404, "did you mean `double`"),
        ("a model nobody has", Ask::post("/v2/models/resnet/infer", "{}"), 404, "model `resnet` not found"),
        ("a version nobody has", Ask::post("/predict/double/7", "{}"), 404, "version `7`"),
        ("a key with a slip", Ask::post("/predict", r#"{"inptu": [[1]]}"#), 400, "did you mean `input`"),
        ("no input", Ask::post("/predict", "{}"), 400, "`input` is missing"),
        (
            "an output nobody gives",
            Ask::post("/predict", r#"{"input": [[1, 2, 3, 4]], "outputs": ["z"]}"#),
            400,
            "z",
        ),
        (
            "a tensor without its type",
            protocol(r#"{"inputs": [{"name": "x", "shape": [1, 4], "data": [1]}]}"#),
            400,
            "datatype",
        ),
        (
            "a tensor of another type",
            protocol(
                r#"{"inputs": [{"name": "x", "shape": [1, 4], "datatype": "INT64", "data": [1, 2, 3, 4]}]}"#,
            ),
            400,
            "INT64",
        ),
        (
            "a shape the data does not have",
            protocol(
                r#"{"inputs": [{"name": "x", "shape": [2, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}"#,
            ),
            400,
            "shape",
        ),
        ("a path that leads nowhere", Ask::get("/nothing"), 404, "/nothing"),
    ] {
        let reply = server.ask(&ask);
        assert_eq!(reply.status, status, "{what}: {}", reply.text());
        let error = reply.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(word), "{what}: {error}");
    }
    let broken = b"this is no request\r\n\r\n";
    let mut connection = server.connect();
    connection.stream.write_all(broken).unwrap();
    assert_eq!(connection.receive().unwrap().status, 400);
    answers(&server);
    assert_eq!(server.metric("cudock_rows_total"), 1);
}

#[test]
fn a_number_that_is_none_gets_through_where_the_protocol_has_it() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &[]);
    let row = f32_bytes(&[f32::NAN, f32::INFINITY, 1.0, -0.0]);
    let raw = Ask::post("/predict", row).with("content-type", "application/octet-stream");
    let reply = server.ask(&raw).ok();
    let found = crate::serve_support::made::f32_values(&reply.body);
    assert!(found[0].is_nan(), "{found:?}");
    assert_eq!(
        found[1..].iter().map(|value| value.to_bits()).collect::<Vec<_>>(),
        [f32::INFINITY, 2.0, -0.0].map(f32::to_bits)
    );
    let as_json = server.ask(&raw.with("accept", "application/json")).ok().json();
    assert_eq!(as_json["prediction"], serde_json::json!([[null, null, 2.0, -0.0]]));
}
