//! Shutdown, reload, and failure to start.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use cudock_server::ServerError;
use cudock_testkit::client::{eventually, get};

use crate::support::{TestServer, bind_error, count};

#[test]
fn a_shutdown_finishes_accepted_requests_and_refuses_new_connections() {
    let mut server = TestServer::start(|_| {});
    let (mut running, mut idle) = (server.connect(), server.connect());
    idle.write(&get("/", ""));
    idle.receive();
    running.write(&get("/wait", ""));
    eventually("the request is handled", || count(&server.counters.handled) == 2);
    server.resources.drain.begin();
    eventually("new connections are refused", || TcpStream::connect(server.address).is_err());
    assert_eq!(count(&server.counters.closed), 0, "a request is still running");
    server.gate.add_permits(1);
    let response = running.receive();
    assert_eq!((response.status, response.header("connection")), (200, Some("close")));
    assert_eq!((running.rest(), idle.rest()), (Vec::new(), Vec::new()), "both are closed");
    server.end().unwrap();
    assert_eq!(count(&server.counters.closed), 1);
    let log = server.log();
    assert!(log.contains("draining\n") && log.ends_with("ended connections_left=0\n"), "{log}");
}

#[test]
fn a_request_that_outlasts_the_drain_timeout_is_dropped() {
    let mut server = TestServer::start(|settings| settings.drain_timeout = Duration::from_millis(50));
    let mut running = server.connect();
    running.write(&get("/wait", ""));
    eventually("the request is handled", || count(&server.counters.handled) == 1);
    server.end().unwrap();
    assert_eq!(count(&server.counters.closed), 0);
    assert!(server.log().ends_with("ended connections_left=1\n"), "{}", server.log());
}

#[test]
fn a_shutdown_does_not_wait_for_a_handler_that_looks_for_changes() {
    let mut server = TestServer::start(|_| {});
    let gate = Arc::clone(&server.refresh_gate);
    let mut held = None;
    eventually("the handler is idle", || {
        held = gate.try_acquire().ok();
        held.is_some()
    });
    let before = count(&server.counters.refreshes);
    eventually("the handler is busy", || count(&server.counters.refreshes) > before);
    server.resources.drain.begin();
    eventually("the server ends", || server.log().ends_with("ended connections_left=0\n"));
    server.end().unwrap();
}

#[test]
fn sighup_reloads_the_handler() {
    let server = TestServer::start(|_| {});
    let this = rustix::process::getpid();
    rustix::process::kill_process(this, rustix::process::Signal::HUP).unwrap();
    eventually("the handler reloads", || count(&server.counters.reloads) > 0);
    assert_eq!(server.send(&get("/", "")).status, 200);
}

#[test]
fn a_server_whose_handler_cannot_load_ends_with_its_error() {
    let load = || Err(ServerError::System(io::Error::other("nothing to serve")));
    let (mut server, is_ready) = TestServer::launch(|_| {}, load);
    assert!(is_ready.recv().is_err(), "it is never ready");
    let error = server.end().unwrap_err();
    assert!(
        matches!(&error, ServerError::System(source) if source.to_string() == "nothing to serve"),
        "{error}"
    );
    assert_eq!(count(&server.counters.closed), 1);
}

#[test]
fn an_address_in_use_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = bind_error(|settings| settings.listen = vec![address]);
    assert_eq!(error.to_string(), format!("cannot listen on {address}"));
}
