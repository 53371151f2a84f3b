//! Deadlines and priorities of requests that wait.

use crate::serve_support::client::{Ask, Connection};
use crate::serve_support::made::times;
use crate::serve_support::server::{Stage, eventually};
use crate::serve_support::{occupy, receive_all, send_all, until_queued};
use cudock_testkit::onnx;

#[test]
fn a_request_whose_time_is_over_is_rejected_and_never_run() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &[]);
    let held = server.hold_engine();
    let mut first = occupy(&server, &Ask::predict("[[1, 1, 1, 1]]"));
    let row = "[[1, 2, 3, 4]]";
    let in_header = Ask::predict(row).with("x-timeout-ms", 1);
    let in_body = Ask::post("/predict", format!(r#"{{"input": {row}, "parameters": {{"timeout_ms": 20}}}}"#));
    let protocol = Ask::post(
        "/v2/models/double/infer",
        r#"{"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}],
            "parameters": {"timeout": 20000}}"#,
    );
    // The engine is held still, so these responses come without it.
    for ask in [&in_header, &in_body, &protocol] {
        let reply = server.ask(ask);
        assert_eq!(reply.status, 504, "{}", reply.text());
    }
    drop(held);
    first.receive().unwrap().ok();
    server.ask(&Ask::predict(row).with("x-timeout-ms", 60_000)).ok();
    assert_eq!(server.metric("cudock_rows_total"), 2, "rows of late requests were run");
    assert_eq!(server.metric("cudock_expired_total"), 3);
    assert_eq!(server.metric("cudock_canceled_total"), 0, "nobody left");
    for wrong in ["soon", "-1", "nan"] {
        assert_eq!(server.ask(&Ask::predict(row).with("x-timeout-ms", wrong)).status, 400, "{wrong}");
    }
}

#[test]
fn who_waits_with_priority_is_run_first() {
    let Some(stage) = Stage::new() else { return };
    stage.write("spin.onnx", &onnx::spin());
    let server = stage.serve("spin.onnx", &["--max-batch", "1", "--queue-time", "60s"]);
    let held = server.hold_engine();
    let mut first = occupy(&server, &Ask::predict("[[1]]"));
    let ask = |priority: usize| Ask::predict("[[20000]]").with("x-priority", priority);
    let mut patient = send_all(&server, &vec![ask(9); 10]);
    until_queued(&server, 10);
    let mut urgent = send_all(&server, &vec![ask(1); 5]);
    until_queued(&server, 15);
    drop(held);
    first.receive().unwrap().ok();
    all_answered(&mut urgent);
    let still_waiting = patient.iter().filter(|connection| !has_reply(connection)).count();
    assert!(still_waiting >= 5, "{still_waiting} of 10 that came first and could wait still waited");
    all_answered(&mut patient);
}

#[track_caller]
fn all_answered(connections: &mut [Connection]) {
    for reply in receive_all(connections) {
        reply.ok();
    }
}

fn has_reply(connection: &Connection) -> bool {
    connection.stream.set_nonblocking(true).unwrap();
    let has = connection.stream.peek(&mut [0]).is_ok();
    connection.stream.set_nonblocking(false).unwrap();
    has
}

#[test]
fn more_rows_than_may_wait_are_refused_with_the_time_to_come_back() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--queue-rows", "8", "--queue-time", "60s"]);
    let held = server.hold_engine();
    let mut first = occupy(&server, &Ask::predict("[[1, 1, 1, 1]]"));
    let mut waiting = send_all(&server, &vec![Ask::predict("[[1, 2, 3, 4]]"); 8]);
    until_queued(&server, 8);
    for _ in 0..20 {
        let refused = server.ask(&Ask::predict("[[1, 2, 3, 4]]"));
        assert_eq!(refused.status, 429, "{}", refused.text());
        let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        let milliseconds: u64 = refused.header("retry-after-ms").unwrap().parse().unwrap();
        assert!(seconds >= 1 && milliseconds.div_ceil(1000) <= seconds, "{seconds} s, {milliseconds} ms");
    }
    assert_eq!(server.metric("cudock_refused_total"), 20);
    drop(held);
    first.receive().unwrap().ok();
    all_answered(&mut waiting);
    eventually("there is room again", || server.ask(&Ask::predict("[[1, 2, 3, 4]]")).status == 200);
}
