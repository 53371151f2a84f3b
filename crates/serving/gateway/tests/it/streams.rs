//! Clients that want something other than JSON, and upstreams that answer something else, on the path of batches.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};

use cudock_server::ContentEncoding;
use cudock_testkit::client::{TestClient, post};
use cudock_testkit::http::{Reply, Request, Server};

use crate::support::{JSON, TestGateway, answer, echo, raw_upstream};

const BODY: &str = "{\"input\": [1]}";

/// An upstream that answers three events, each when the test has the one before, and the requests that it got.
fn event_stream() -> (SocketAddr, Sender<()>, Arc<Mutex<Vec<Request>>>) {
    let (release, released) = mpsc::channel::<()>();
    let (released, requests) = (Mutex::new(released), Arc::<Mutex<Vec<Request>>>::default());
    let own = Arc::clone(&requests);
    let upstream = raw_upstream(move |stream: TcpStream, request| {
        let is_batch = request.text().contains("[[");
        own.lock().unwrap().push(request);
        if is_batch {
            // Silent until the gateway hangs up.
            let _ = write_head(&stream);
            let _ = std::io::copy(&mut &stream, &mut std::io::sink());
        } else {
            write_events(&stream, &released);
        }
    });
    (upstream, release, requests)
}

fn write_head(mut stream: &TcpStream) -> std::io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )
}

/// Writes events until the gateway hangs up.
fn write_events(mut stream: &TcpStream, released: &Mutex<mpsc::Receiver<()>>) -> Option<()> {
    write_head(stream).ok()?;
    for event in 0..3 {
        let text = format!("data: {event}\n\n");
        stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).ok()?;
        if released.lock().unwrap().recv().is_err() {
            return None;
        }
    }
    stream.write_all(b"0\r\n\r\n").ok()
}

fn read_events(client: &mut TestClient, release: &Sender<()>) {
    let head = String::from_utf8(client.read_until(b"\r\n\r\n")).unwrap();
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    for event in 0..3 {
        assert_eq!(client.chunk(), format!("data: {event}\n\n").as_bytes());
        release.send(()).unwrap();
    }
    assert!(client.chunk().is_empty());
}

#[test]
fn a_client_that_wants_events_gets_them_one_by_one() {
    let (upstream, release, requests) = event_stream();
    let gateway = TestGateway::start(&[upstream], "");
    for accept in ["text/event-stream", "application/json, text/event-stream"] {
        let mut client = gateway.connect();
        client.write(&post("/predict", &format!("{JSON}accept: {accept}\r\n"), BODY.as_bytes()));
        read_events(&mut client, &release);
    }
    let requests = requests.lock().unwrap();
    assert!(requests.iter().all(|request| request.text() == BODY), "as the client has written them");
    assert_eq!(requests.len(), 2);
}

#[test]
fn events_that_nobody_requested_are_not_held_to_their_end_either() {
    let (upstream, release, requests) = event_stream();
    let gateway = TestGateway::start(&[upstream], "");
    for _ in 0..2 {
        let mut client = gateway.connect();
        client.write(&post("/predict", &format!("{JSON}accept: */*\r\n"), BODY.as_bytes()));
        read_events(&mut client, &release);
    }
    // The first answer, to a list of rows, was given up at its head.
    let bodies: Vec<String> = requests.lock().unwrap().iter().map(Request::text).collect();
    assert_eq!(bodies, ["{\"input\": [[1]]}", BODY, BODY]);
}

#[test]
fn an_answer_of_another_kind_comes_as_it_is_and_is_not_merged_with_json() {
    let upstream = Server::start(|request| match request.header("accept") {
        Some("text/csv") => {
            Reply::new(200, format!("csv of {}", request.text())).with("content-type", "text/csv")
        }
        _ => echo(request),
    });
    let gateway = TestGateway::start(&[upstream.address()], "");
    let ask = |accept: &str| {
        let mut client = gateway.connect();
        client.write(&post("/predict", &format!("{JSON}accept: {accept}\r\n"), BODY.as_bytes()));
        client
    };
    for _ in 0..20 {
        let mut clients = ["text/csv", "*/*", "text/csv", "application/json"].map(ask);
        for (client, is_csv) in clients.iter_mut().zip([true, false, true, false]) {
            let response = client.receive();
            let expected =
                if is_csv { format!("csv of {BODY}") } else { answer("[1]").replace("\":", "\": ") };
            let text = response.text();
            assert_eq!(
                (response.status, text.replace("\": ", "\":")),
                (200, expected.replace("\": ", "\":"))
            );
            assert_eq!(
                response.header("content-type"),
                Some(if is_csv { "text/csv" } else { "application/json" })
            );
        }
    }
}

#[test]
fn an_answer_that_is_encoded_unrequested_is_decoded_to_be_split() {
    for encoding in [ContentEncoding::Gzip, ContentEncoding::Deflate, ContentEncoding::Zstd] {
        let upstream = Server::start(move |request| {
            let reply = echo(request);
            let encoded = encoding.compress([reply.body.as_slice()]).unwrap();
            Reply { body: encoded, ..reply }
                .with("content-encoding", encoding.name())
                .with("content-digest", "sha-256=:AA==:")
        });
        let gateway = TestGateway::start(&[upstream.address()], "");
        for _ in 0..2 {
            let response = gateway.predict("{\"input\":[1]}");
            assert_eq!((response.status, response.text()), (200, answer("[1]")), "{encoding:?}");
            assert_eq!(
                (response.header("content-encoding"), response.header("content-digest")),
                (None, None)
            );
        }
        assert_eq!(upstream.count("/predict"), 2);
    }
}

#[test]
fn an_answer_that_cannot_be_decoded_is_passed_on_with_its_encoding() {
    for (encoding, body) in [("x-own", "abc"), ("gzip", "no gzip")] {
        let upstream = Server::start(move |_| Reply::new(200, body).with("content-encoding", encoding));
        let gateway = TestGateway::start(&[upstream.address()], "");
        let headers = format!("{JSON}accept-encoding: {encoding}\r\n");
        for _ in 0..2 {
            let response = gateway.send(&post("/predict", &headers, BODY.as_bytes()));
            assert_eq!((response.status, response.text().as_str()), (200, body));
            assert_eq!(response.header("content-encoding"), Some(encoding));
        }
        let requests = upstream.requests();
        let accepted = requests.iter().filter(|request| request.path == "/predict");
        let accepted: Vec<_> = accepted.map(|request| request.header("accept-encoding")).collect();
        assert_eq!(accepted, [None, Some(encoding), Some(encoding)], "batches are sent without");
    }
}

#[test]
fn a_request_that_is_signed_or_digested_is_not_changed() {
    let upstream = Server::start(|request| Reply::new(200, format!("got {}", request.text())));
    let gateway = TestGateway::start(&[upstream.address()], "");
    for name in ["content-digest", "Content-MD5", "signature", "x-amz-content-sha256"] {
        let headers = format!("{JSON}{name}: AA==\r\n");
        assert_eq!(gateway.send(&post("/predict", &headers, BODY.as_bytes())).text(), format!("got {BODY}"));
    }
    assert_eq!(upstream.count("/predict"), 4);
}
