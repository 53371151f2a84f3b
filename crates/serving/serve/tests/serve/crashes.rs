//! Clients whose requests crash engines, and the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cudock_project::{ByteSize, ServeOptions};
use serde_json::json;

use crate::engine::{LETHAL, StartBehavior, TARGET};
use crate::support::{TestResponse, TestServer, eventually};

/// Sends a request that crashes every engine, and differs from others by a number.
fn crash(server: &TestServer, number: usize) -> TestResponse {
    send(server, LETHAL, number)
}

fn send(server: &TestServer, value: f32, number: usize) -> TestResponse {
    server.send("POST", "/predict", "", &json!({ "input": [[value, number]] }).to_string())
}

fn starts(server: &TestServer) -> usize {
    server.control.starts.load(Ordering::SeqCst)
}

/// A server whose engines crashed twice a moment ago, so that there is a spare one.
fn wary() -> Arc<TestServer> {
    let server = Arc::new(TestServer::start(|_| {}));
    assert_eq!(crash(&server, 0).status, 500);
    eventually("a spare engine is started", || starts(&server) == 4);
    server
}

#[test]
fn a_request_that_crashed_engines_is_not_run_again() {
    let server = wary();
    let restarts = server.metric("cudock_engine_restarts_total");
    for _ in 0..5 {
        let response = crash(&server, 0);
        assert_eq!(response.status, 500);
        assert!(response.text.contains("died when it ran this request before"), "{}", response.text);
    }
    assert_eq!((server.metric("cudock_engine_restarts_total"), restarts), (2, 2));
    assert_eq!(server.metric("cudock_failed_total"), 6);
    assert_eq!(server.double("double", 3.0, "").json()["prediction"], json!([[6.0, 2.0]]));
}

#[test]
fn a_client_whose_requests_crash_engines_costs_one_engine_each_and_the_others_are_answered() {
    let server = Arc::new(TestServer::start(|_| {}));
    let is_over = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (1..=4_u8)
        .map(|client| {
            let (server, is_over) = (Arc::clone(&server), Arc::clone(&is_over));
            thread::spawn(move || {
                let mut answered = 0;
                while !is_over.load(Ordering::SeqCst) {
                    let response = server.double("double", f32::from(client), "");
                    assert_eq!(response.json()["prediction"], json!([[f32::from(client) * 2.0, 2.0]]));
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    let crashes = 4;
    for number in 0..crashes {
        let response = crash(&server, number);
        assert_eq!(
            (response.status, response.json()["error"].as_str().unwrap()),
            (500, "the engine died (fatal input)")
        );
    }
    is_over.store(true, Ordering::SeqCst);
    for other in others {
        assert!(other.join().unwrap() > 0);
    }
    let restarts = server.metric("cudock_engine_restarts_total");
    // The first one is alone in an engine after one crash or two; each of the others is at once.
    assert!((5..=6).contains(&restarts), "{restarts} engines for {crashes} requests");
    assert_eq!(server.metric("cudock_failed_total"), crashes as u64);
}

#[test]
fn a_request_whose_engine_others_kill_runs_again_until_it_was_killed_alone_twice() {
    let server = wary();
    let restarts = || server.metric("cudock_engine_restarts_total");
    for number in 0..3 {
        let before = restarts();
        assert_eq!(send(&server, TARGET, number).status, 500);
        assert_eq!(restarts() - before, 2);
    }
    assert_eq!(server.double("double", 3.0, "").json()["prediction"], json!([[6.0, 2.0]]));
}

#[test]
fn the_error_of_a_request_at_fault_waits_for_the_next_spare_engine_and_others_do_not() {
    let server = wary();
    server.control.set_starts(StartBehavior::Wait);
    let crashing = {
        let server = Arc::clone(&server);
        thread::spawn(move || crash(&server, 1).status)
    };
    eventually("the spare engine has taken over", || server.metric("cudock_engine_restarts_total") == 3);
    for _ in 0..3 {
        assert_eq!(server.double("double", 4.0, "").json()["prediction"], json!([[8.0, 2.0]]));
    }
    assert!(!crashing.is_finished());
    server.control.set_starts(StartBehavior::Start);
    assert_eq!(crashing.join().unwrap(), 500);
}

#[test]
fn a_spare_engine_does_not_exceed_the_limit_for_the_memory_of_models() {
    let options = ServeOptions { model_memory: Some(ByteSize(1 << 30)), ..ServeOptions::default() };
    let server = TestServer::serve(&["double"], options, |_| {});
    for number in 0..4 {
        assert_eq!(crash(&server, number).status, 500);
    }
    assert_eq!(server.double("double", 3.0, "").status, 200);
    assert_eq!(server.control.running(), (1, 1));
}

#[test]
fn a_model_that_is_unloaded_has_no_spare_engine_and_owes_no_errors() {
    let server = wary();
    assert_eq!(server.send("POST", "/v2/repository/models/double/unload", "", "").status, 200);
    assert_eq!(server.control.running().0, 0);
}
