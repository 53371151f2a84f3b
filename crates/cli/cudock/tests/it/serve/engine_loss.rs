//! An engine that dies or hangs is replaced, and health reports it meanwhile.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::serve_support::client::Ask;
use crate::serve_support::made::{times, twice};
use crate::serve_support::server::{Stage, eventually, signal};
use crate::serve_support::{occupy, on_threads, receive_all, send_all, until_queued};
use cudock_testkit::onnx;

#[test]
fn no_request_is_lost_when_the_engine_is_killed_under_load() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--queue-time", "60s"]);
    let (killed, answered) = (AtomicU64::new(0), AtomicUsize::new(0));
    let done = AtomicBool::new(false);
    let statuses = on_threads(10, |number| {
        let mut seen = BTreeSet::new();
        let mut connection = server.connect();
        match number {
            // Kills the engine three times, each time after the next one has answered for a while.
            0 => {
                for _ in 0..3 {
                    let before = answered.load(Ordering::SeqCst);
                    eventually("requests are answered", || answered.load(Ordering::SeqCst) > before + 200);
                    signal(server.engine(), "KILL");
                    killed.fetch_add(1, Ordering::SeqCst);
                    let restarts = killed.load(Ordering::SeqCst);
                    eventually("an engine runs again", || {
                        server.metric("cudock_engine_restarts_total") >= restarts && server.health().0 == 200
                    });
                }
                done.store(true, Ordering::SeqCst);
            }
            1 => {
                while !done.load(Ordering::SeqCst) {
                    let reply = connection.ask(&Ask::get("/health"));
                    seen.insert((reply.status, reply.json()["status"].as_str().unwrap().to_owned()));
                }
            }
            _ => {
                while !done.load(Ordering::SeqCst) {
                    let reply = connection.ask(&Ask::predict(&format!("[[{number}, 1, 2, 3]]"))).ok();
                    assert_eq!(reply.json()["prediction"][0][0], twice(number));
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
        seen
    });
    let seen: BTreeSet<_> = statuses.into_iter().flatten().collect();
    assert!(seen.contains(&(200, "healthy".to_owned())), "{seen:?}");
    assert!(
        seen.contains(&(503, "unhealthy".to_owned())),
        "no response reported that there was no engine: {seen:?}"
    );
    assert_eq!(server.metric("cudock_failed_total"), 0);
    assert!(
        server.log().contains("engine lost") && server.log().contains("engine replaced"),
        "{}",
        server.log()
    );
}

#[test]
fn a_request_that_hangs_the_engine_fails_alone() {
    let Some(stage) = Stage::new() else { return };
    stage.write("spin.onnx", &onnx::spin());
    let server = stage.serve("spin.onnx", &["--engine-timeout", "1s", "--queue-time", "60s"]);
    let engine = server.engine();
    let for_ever = "[[9000000000000000000]]";
    let mut asks: Vec<Ask> = (0..8).map(|number| Ask::predict(&format!("[[{number}]]"))).collect();
    asks.insert(3, Ask::predict(for_ever));
    let mut waiting = send_all(&server, &asks);
    let mut replies = receive_all(&mut waiting);
    let hung = replies.remove(3);
    assert_eq!(hung.status, 500, "{}", hung.text());
    assert!(hung.text().contains("timed out"), "{}", hung.text());
    for (number, reply) in replies.into_iter().enumerate() {
        assert_eq!(reply.ok().json()["prediction"], serde_json::json!([[number]]));
    }
    assert!(server.metric("cudock_engine_restarts_total") >= 1);
    assert_eq!(server.metric("cudock_failed_total"), 1);
    eventually("all is well again", || server.health().1["status"] == "healthy");
    assert_ne!(server.engine(), engine, "the engine that hung is gone");
    server.ask(&Ask::predict("[[5]]")).ok();
}

#[test]
fn an_engine_that_stops_answering_is_replaced_and_its_batch_run_again() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--engine-timeout", "1s", "--queue-time", "60s"]);
    let engine = server.engine();
    signal(engine, "STOP");
    let mut first = occupy(&server, &Ask::predict("[[1, 0, 0, 0]]"));
    let asks: Vec<Ask> = (0..20).map(|number| Ask::predict(&format!("[[{number}, 0, 0, 0]]"))).collect();
    let mut waiting = send_all(&server, &asks);
    assert_eq!(first.receive().unwrap().ok().json()["prediction"][0][0], 2.0);
    for (number, reply) in receive_all(&mut waiting).into_iter().enumerate() {
        assert_eq!(reply.ok().json()["prediction"][0][0], twice(number));
    }
    assert_eq!(server.metric("cudock_engine_restarts_total"), 1);
    assert!(!server.engines().contains(&engine));
}

#[test]
fn health_names_the_loss_while_a_model_cannot_be_started_again() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--queue-time", "60s"]);
    stage.swap("double.onnx", b"no model");
    signal(server.engine(), "KILL");
    let mut waiting = send_all(&server, &[Ask::predict("[[1, 1, 1, 1]]")]);
    eventually("health reports the loss", || server.health().0 == 503);
    let (_, health) = server.health();
    assert_eq!(health["status"], "unhealthy");
    assert!(!health["reason"].as_str().unwrap().is_empty(), "{health}");
    assert_eq!(server.get("/ready").status, 503);
    assert_eq!(server.get("/live").status, 200);
    stage.swap("double.onnx", &times(2.0));
    assert_eq!(receive_all(&mut waiting).remove(0).ok().json()["prediction"][0][0], 2.0);
    eventually("all is well again", || server.health().0 == 200);
}

#[test]
fn a_client_that_left_while_the_engine_was_lost_is_not_run_for() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--queue-time", "60s"]);
    let held = server.hold_engine();
    let first = occupy(&server, &Ask::predict("[[1, 1, 1, 1]]"));
    let waiting = send_all(&server, &vec![Ask::predict("[[1, 1, 1, 1]]"); 5]);
    until_queued(&server, 5);
    stage.swap("double.onnx", b"no model");
    signal(server.engine(), "KILL");
    drop(held);
    eventually("health reports the loss", || server.health().0 == 503);
    drop((first, waiting));
    eventually("those who left are taken back", || server.metric("cudock_canceled_total") == 6);
    stage.swap("double.onnx", &times(2.0));
    eventually("all is well again", || server.health().0 == 200);
    server.ask(&Ask::predict("[[1, 1, 1, 1]]")).ok();
    assert_eq!(server.metric("cudock_rows_total"), 1);
}
