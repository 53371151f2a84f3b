//! Probes of servers on this machine.

use std::io::Write;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use cudock_http::{Client, HttpErrorKind, Request};
use cudock_testkit::http::read_request;

/// A server at `address` that sends these bytes to one client.
fn start(
    address: &str,
    reply: &'static str,
) -> Option<(u16, thread::JoinHandle<cudock_testkit::http::Request>)> {
    let listener = TcpListener::bind(address).ok()?;
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let request = read_request(&stream).unwrap();
        stream.write_all(reply.as_bytes()).unwrap();
        if reply.is_empty() {
            thread::sleep(Duration::from_secs(2));
        }
        request
    });
    Some((port, server))
}

fn probe(port: u16, deadline: Duration) -> Result<u16, HttpErrorKind> {
    let request = Request::get(format!("http://localhost:{port}/health")).without_redirects();
    let response = Client::for_probes().send(&request.deadline(deadline).header("Host", "example"));
    response.map(|response| response.status()).map_err(|error| error.kind)
}

#[test]
fn a_probe_finds_a_server_on_either_loopback_address() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let reply = "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n";
        let Some((port, server)) = start(address, reply) else {
            cudock_testkit::missing("ipv6", format_args!("cannot listen at {address}"));
            continue;
        };
        assert_eq!(probe(port, Duration::from_secs(20)), Ok(302), "{address}");
        assert_eq!(server.join().unwrap().path, "/health");
    }
}

#[test]
fn a_probe_has_its_own_headers_and_a_deadline() {
    let (port, server) = start("127.0.0.1:0", "HTTP/1.0 204 No Content\r\n\r\n").unwrap();
    assert_eq!(probe(port, Duration::from_secs(20)), Ok(204));
    assert_eq!(server.join().unwrap().header("host"), Some("example"));
    let (port, server) = start("127.0.0.1:0", "").unwrap();
    assert_eq!(probe(port, Duration::from_millis(50)), Err(HttpErrorKind::Transient));
    server.join().unwrap();
    let (port, server) = start("127.0.0.1:0", "SSH-2.0-x\r\n").unwrap();
    assert!(probe(port, Duration::from_secs(5)).is_err());
    server.join().unwrap();
}
