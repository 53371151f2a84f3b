//! SIGTERM ends the server when every accepted request has its answer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::serve_support::client::{Ask, Connection};
use crate::serve_support::made::{times, twice};
use crate::serve_support::server::{Stage, eventually};
use crate::serve_support::{occupy, on_threads, receive_all, send_all, until_queued};

#[test]
fn every_request_accepted_before_sigterm_is_answered_and_new_ones_are_not_let_in() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let mut server = stage.serve("double.onnx", &["--queue-time", "60s", "--drain-timeout", "60s"]);
    let held = server.hold_engine();
    let mut first = occupy(&server, &Ask::predict("[[0, 0, 0, 0]]"));
    let asks: Vec<Ask> = (0..32).map(|number| Ask::predict(&format!("[[{number}, 1, 1, 1]]"))).collect();
    let mut waiting = send_all(&server, &asks);
    until_queued(&server, 32);
    let mut watching = server.connect();
    server.signal("TERM");
    eventually("the server says that it ends", || server.log().contains("draining"));
    let health = watching.ask(&Ask::get("/health"));
    assert_eq!((health.status, health.json()["status"].as_str()), (503, Some("draining")));
    assert_eq!(health.header("connection"), Some("close"));
    eventually("nobody new is let in", || Connection::open(server.address).is_err());
    drop(held);
    first.receive().unwrap().ok();
    for (number, reply) in receive_all(&mut waiting).into_iter().enumerate() {
        assert_eq!(reply.ok().json()["prediction"][0][0], twice(number));
    }
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    assert!(server.engines().is_empty());
}

#[test]
fn sigterm_under_load_loses_no_request() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let mut server = stage.serve("double.onnx", &["--queue-time", "60s"]);
    let (answered, terminated) = (AtomicUsize::new(0), AtomicBool::new(false));
    let answers = on_threads(33, |number| {
        if number == 32 {
            eventually("requests are answered", || answered.load(Ordering::SeqCst) > 500);
            terminated.store(true, Ordering::SeqCst);
            server.signal("TERM");
            return 0;
        }
        let mut connection = server.connect();
        let ask = Ask::predict(&format!("[[{number}, 1, 1, 1]]"));
        let mut own = 0;
        // No request is sent on a connection that the server has closed; every request sent must be answered.
        while !connection.is_closed() {
            let reply = connection.ask(&ask).ok();
            assert_eq!(reply.json()["prediction"][0][0], twice(number));
            answered.fetch_add(1, Ordering::SeqCst);
            own += 1;
            if reply.header("connection") == Some("close") {
                assert!(terminated.load(Ordering::SeqCst), "closed before SIGTERM was sent");
                break;
            }
        }
        own
    });
    assert_eq!(answers.iter().sum::<usize>(), answered.load(Ordering::SeqCst));
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
}

#[test]
fn a_request_that_never_ends_does_not_keep_the_server() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let mut server = stage.serve("double.onnx", &["--drain-timeout", "1s"]);
    let engine = server.engine();
    let held = server.hold_engine();
    let first = occupy(&server, &Ask::predict("[[0, 0, 0, 0]]"));
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    drop((held, first));
    eventually("the engine ends with its server", || {
        !std::path::Path::new(&format!("/proc/{engine}")).exists()
    });
}

#[test]
fn sigint_ends_an_idle_server() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let mut server = stage.serve("double.onnx", &[]);
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
}
