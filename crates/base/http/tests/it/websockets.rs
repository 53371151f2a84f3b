//! Web sockets.

use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::Duration;

use cudock_base::Secret;
use cudock_http::{HttpErrorKind, SocketEvent, WebSocket};
use cudock_testkit::http::{Reply, Server};
use tungstenite::Message;
use tungstenite::handshake::server::{Request, Response};

use crate::client;

const MOMENT: Duration = Duration::from_millis(20);

/// The next message or the end.
fn next(socket: &mut WebSocket) -> SocketEvent {
    loop {
        match socket.receive(MOMENT).unwrap() {
            SocketEvent::Silence => {}
            event => return event,
        }
    }
}

/// A server that tells the authorization it got, returns every message, and says goodbye after `end`.
fn echo() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut authorization = String::new();
        #[allow(clippy::result_large_err, reason = "the library's own type")]
        let read = |request: &Request, response: Response| {
            let value = request.headers().get("authorization");
            value.map_or("none", |value| value.to_str().unwrap()).clone_into(&mut authorization);
            Ok(response)
        };
        let mut socket = tungstenite::accept_hdr(stream, read).unwrap();
        socket.send(Message::text(authorization)).unwrap();
        loop {
            let message = socket.read().unwrap();
            if message.to_text().is_ok_and(|text| text == "end") {
                socket.close(None).unwrap();
                while socket.read().is_ok() {}
                return;
            }
            if !message.is_close() {
                socket.send(message).unwrap();
            }
        }
    });
    format!("ws://{address}/path?query=1")
}

#[test]
fn messages_go_both_ways_until_the_server_says_goodbye() {
    let token = Secret::new("Bearer word");
    let mut socket = client().open_websocket(&echo(), Some(&token)).unwrap();
    assert_eq!(next(&mut socket), SocketEvent::Message(b"Bearer word".to_vec()));
    assert_eq!(socket.receive(MOMENT).unwrap(), SocketEvent::Silence);
    let long = vec![7; 300_000];
    socket.send_bytes(long.clone()).unwrap();
    assert_eq!(next(&mut socket), SocketEvent::Message(long));
    socket.send_text("text").unwrap();
    assert_eq!(next(&mut socket), SocketEvent::Message(b"text".to_vec()));
    socket.send_text("end").unwrap();
    assert_eq!(next(&mut socket), SocketEvent::Closed);
}

#[test]
fn a_refusal_has_its_status() {
    let server = Server::start(|_| Reply::new(401, "no"));
    let error = client().open_websocket(&format!("ws://{}/", server.host()), None).unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Status(401), "{error}");
}

#[test]
fn plain_web_sockets_are_for_this_machine_only() {
    for (url, kind) in [
        ("ws://example.com/", HttpErrorKind::PlainHttp),
        ("http://127.0.0.1/", HttpErrorKind::Refused),
        ("wss://user:word@example.com/", HttpErrorKind::Refused),
    ] {
        assert_eq!(client().open_websocket(url, None).unwrap_err().kind, kind, "{url}");
    }
    let error = client().open_websocket("ws://127.0.0.1:1/", None).unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Transient, "{error}");
}
