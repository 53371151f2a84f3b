//! Connections: protocols, keep-alive, and clients that are slow, idle or gone.

use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use cudock_testkit::client::{eventually, get, post};

use crate::http2;
use crate::support::{TestServer, count};

const SHORT: Duration = Duration::from_millis(200);

#[test]
fn a_connection_serves_many_requests_also_pipelined() {
    let server = TestServer::start(|_| {});
    let mut client = server.connect();
    for body in ["first", "second"] {
        client.write(&post("/", "", body.as_bytes()));
        assert_eq!(client.receive().text(), body);
    }
    client.write(&[post("/", "", b"third"), post("/", "", b"fourth")].concat());
    assert_eq!((client.receive().text(), client.receive().text()), ("third".into(), "fourth".into()));
    assert_eq!(count(&server.counters.io_threads), 2);
}

#[test]
fn http2_shares_the_port() {
    let server = TestServer::start(|_| {});
    // `:status 200`, as an indexed header field (RFC 7541, appendix A).
    assert_eq!(http2::get(&server, &[(":authority", "localhost")]).first(), Some(&0x88));
    assert_eq!(count(&server.counters.handled), 1);
}

#[test]
fn a_head_that_trickles_in_is_dropped_and_others_are_served_meanwhile() {
    let server = TestServer::start(|settings| settings.client_timeout = SHORT);
    let mut slow = server.connect();
    let mut trickling = slow.stream.try_clone().unwrap();
    let trickle = thread::spawn(move || {
        use std::io::Write;
        let head = b"GET / HTTP/1.1\r\nhost: localhost\r\nx-filler: ".iter().chain(std::iter::repeat(&b'a'));
        head.take_while(|&&byte| {
            thread::sleep(Duration::from_millis(10));
            trickling.write_all(&[byte]).is_ok()
        })
        .count()
    });
    assert_eq!(server.send(&get("/", "")).status, 200);
    assert_eq!(slow.rest(), b"", "a client without a request gets no response");
    slow.stream.shutdown(Shutdown::Both).ok();
    assert!(trickle.join().unwrap() > 3);
    assert_eq!(count(&server.counters.handled), 1);
}

#[test]
fn a_silent_connection_is_closed() {
    let server = TestServer::start(|settings| settings.client_timeout = SHORT);
    let mut idle = server.connect();
    idle.write(&get("/", ""));
    assert_eq!(idle.receive().status, 200);
    assert_eq!(idle.rest(), b"");
}

#[test]
fn a_stream_may_be_silent_for_longer_than_its_client() {
    let server = TestServer::start(|settings| settings.client_timeout = SHORT);
    let mut client = server.connect();
    client.write(&get("/stream", "connection: close\r\n"));
    let received = String::from_utf8(client.rest()).unwrap();
    assert!(received.ends_with("4\r\nlate\r\n0\r\n\r\n"), "{received}");
}

#[test]
fn the_connection_idle_longest_makes_room_for_another() {
    let server = TestServer::start(|settings| settings.connections = 2);
    let mut first = server.connect();
    first.write(&get("/", ""));
    first.receive();
    let mut waiting = server.connect();
    waiting.write(&get("/wait", ""));
    eventually("the request is handled", || count(&server.counters.handled) == 2);
    assert_eq!(server.send(&get("/", "")).status, 200);
    assert_eq!(first.rest(), b"", "the idle connection was closed");
    server.gate.add_permits(1);
    assert_eq!(waiting.receive().status, 200, "the busy one was not");
}

#[test]
fn a_client_that_stops_sending_gets_its_response_and_one_that_left_is_canceled() {
    let server = TestServer::start(|_| {});
    let mut half_closed = server.connect();
    half_closed.write(&get("/wait", ""));
    half_closed.stream.shutdown(Shutdown::Write).unwrap();
    let mut gone = server.connect();
    gone.write(&get("/wait", ""));
    eventually("both requests are handled", || count(&server.counters.handled) == 2);
    drop(gone);
    eventually("the request is canceled", || count(&server.counters.canceled) == 1);
    server.gate.add_permits(1);
    assert_eq!(half_closed.receive().status, 200);
    assert_eq!(count(&server.counters.canceled), 1);
}
