//! Work whose client left is not run.

use crate::serve_support::client::Ask;
use crate::serve_support::made::times;
use crate::serve_support::server::{Stage, eventually};
use crate::serve_support::{occupy, send_all, until_queued};

#[test]
fn requests_whose_clients_left_are_not_run() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &[]);
    let held = server.hold_engine();
    let mut first = occupy(&server, &Ask::predict("[[1, 1, 1, 1]]"));
    let asks = vec![Ask::predict("[[1, 2, 3, 4], [5, 6, 7, 8]]"); 50];
    let waiting = send_all(&server, &asks);
    until_queued(&server, 50);
    drop(waiting);
    eventually("all fifty are taken back", || server.metric("cudock_canceled_total") == 50);
    assert_eq!(server.metric("cudock_queue_rows"), 0);
    drop(held);
    first.receive().unwrap().ok();
    server.ask(&Ask::predict("[[3, 2, 1, 0]]")).ok();
    assert_eq!(server.metric("cudock_rows_total"), 2, "the rows of those who stayed, and no other");
    eventually("nothing is held for those who left", || server.metric("cudock_held_bytes") == 0);
}

#[test]
fn a_client_that_leaves_in_the_middle_of_its_body_is_forgotten() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &[]);
    for cut in [20, 60, 90] {
        let whole = Ask::predict("[[1, 2, 3, 4], [5, 6, 7, 8]]").bytes();
        let mut connection = server.connect();
        std::io::Write::write_all(&mut connection.stream, &whole[..whole.len().min(cut)]).unwrap();
    }
    eventually("nothing is held for them", || server.metric("cudock_held_bytes") == 0);
    assert_eq!(server.metric("cudock_rows_total"), 0);
    server.ask(&Ask::predict("[[1, 2, 3, 4]]")).ok();
}

#[test]
fn room_that_clients_leave_is_given_to_others() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--queue-rows", "8", "--queue-time", "60s"]);
    let held = server.hold_engine();
    let first = occupy(&server, &Ask::predict("[[1, 1, 1, 1]]"));
    let waiting = send_all(&server, &vec![Ask::predict("[[1, 2, 3, 4]]"); 8]);
    until_queued(&server, 8);
    assert_eq!(server.ask(&Ask::predict("[[1, 2, 3, 4]]")).status, 429);
    drop(waiting);
    eventually("all eight are taken back", || server.metric("cudock_canceled_total") == 8);
    // Nothing has run since the refusal, and nothing will until the engine goes on. One refusal may stand for those who
    // come at the same moment, but not for those who come later.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let mut waiting = send_all(&server, &vec![Ask::predict("[[1, 2, 3, 4]]"); 8]);
    until_queued(&server, 8);
    drop((held, first));
    for connection in &mut waiting {
        connection.receive().unwrap().ok();
    }
}
