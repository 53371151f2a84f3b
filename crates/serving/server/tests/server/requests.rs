//! Requests: limits of bodies, keys, headers, compression, the log.

use std::fs;
use std::time::Duration;

use cudock_server::{ApiKeys, ContentEncoding};
use cudock_testkit::client::{eventually, get, post};

use crate::support::{BODY_LIMIT, TestServer, count};

#[test]
fn a_body_over_the_limit_is_rejected_however_it_is_sent() {
    let server = TestServer::start(|_| {});
    let announced =
        format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", BODY_LIMIT + 1);
    let too_long = vec![b'a'; BODY_LIMIT + 1];
    let chunked = [
        format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n",
            too_long.len()
        )
        .as_bytes(),
        &too_long,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let bomb = ContentEncoding::Gzip.compress([&too_long[..]]).unwrap();
    let bomb = post("/", "content-encoding: gzip\r\n", &bomb);
    for request in [announced.as_bytes(), &chunked, &bomb] {
        let response = server.send(request);
        assert_eq!(response.status, 413, "{}", response.text());
        assert_eq!(response.text(), format!("the body is larger than {BODY_LIMIT} bytes"));
    }
    let largest = &too_long[..BODY_LIMIT];
    assert_eq!(server.send(&post("/", "", largest)).body, largest);
    eventually("all memory is released", || server.resources.budget.held() == 0);
}

#[test]
fn a_client_that_goes_on_sending_a_rejected_body_gets_its_response() {
    let server = TestServer::start(|_| {});
    let mut client = server.connect();
    let head = format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", BODY_LIMIT + 1);
    client.write(head.as_bytes());
    client.stream.peek(&mut [0]).unwrap();
    for _ in 0..16 {
        client.write(&vec![0; 64 << 10]);
    }
    assert_eq!(client.receive().status, 413);
}

#[test]
fn a_body_that_stops_arriving_times_out() {
    let server = TestServer::start(|settings| settings.client_timeout = Duration::from_millis(200));
    let mut client = server.connect();
    client.write(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nhalf");
    assert_eq!(client.receive().status, 408);
}

#[test]
fn requests_beyond_the_memory_budget_are_rejected_until_memory_is_released() {
    let server = TestServer::start(|settings| settings.memory = 4 << 20);
    let never = server.send(&post("/", "", &vec![0; BODY_LIMIT]));
    assert_eq!(never.status, 413, "{}", never.text());
    let mut waiting = server.connect();
    waiting.write(&post("/wait", "", &vec![0; 2 << 20]));
    eventually("the body is held", || server.resources.budget.held() >= 2 << 20);
    let body = post("/", "", &vec![0; 2 << 20]);
    let now = server.send(&body);
    assert_eq!((now.status, now.header("retry-after")), (429, Some("1")), "{}", now.text());
    server.gate.add_permits(1);
    waiting.receive();
    drop(waiting);
    eventually("the memory is released", || server.send(&body).status == 200);
}

#[test]
fn only_requests_with_a_key_are_authorized_and_keys_change_with_their_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let key = |name: &str| format!("{name}-{:x}", std::process::id());
    let (old, new) = (key("old"), key("new"));
    fs::write(file.path(), &old).unwrap();
    let server = TestServer::start(|settings| settings.keys = ApiKeys::from_file(file.path()).unwrap());
    let status = |key: &str| server.send(&get("/", &format!("authorization: Bearer {key}\r\n"))).status;
    let missing = server.send(&get("/", ""));
    assert_eq!((missing.status, missing.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!((status(&old), status(&new), status("")), (200, 401, 401));
    assert_eq!(server.send(&get("/public", "")).status, 200);
    fs::write(file.path(), &new).unwrap();
    eventually("the new key is accepted", || status(&new) == 200);
    assert_eq!(status(&old), 401);
    eventually("the change is logged", || server.log().contains("keys reloaded"));
    assert!(!server.log().contains(&new), "{}", server.log());
}

#[test]
fn an_http1_request_names_its_host_once() {
    let server = TestServer::start(|_| {});
    for (head, status) in [
        ("GET / HTTP/1.1\r\nx-request-id: 7\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nx-request-id: 7\r\nhost: localhost\r\nhost: localhost\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nx-request-id: 7\r\nhost: localhost\r\n\r\n", 200),
        ("GET / HTTP/1.0\r\nx-request-id: 7\r\n\r\n", 200),
    ] {
        let response = server.send(head.as_bytes());
        assert_eq!((response.status, response.header("x-request-id")), (status, Some("7")), "{head}");
    }
    assert_eq!(count(&server.counters.handled), 2);
}

#[test]
fn bodies_are_compressed_in_both_directions() {
    let server = TestServer::start(|_| {});
    for length in [2_000, 300_000] {
        let text = vec![b'a'; length];
        for encoding in [ContentEncoding::Gzip, ContentEncoding::Deflate, ContentEncoding::Zstd] {
            let name = encoding.name();
            let headers = format!("content-encoding: {name}\r\naccept-encoding: {name}\r\n");
            let response = server.send(&post("/", &headers, &encoding.compress([&text[..]]).unwrap()));
            assert_eq!((response.status, response.header("content-encoding")), (200, Some(name)));
            assert!(response.body.len() < length / 10);
            assert_eq!(encoding.inflate(&response.body, length, |_| Ok(())).unwrap(), text);
        }
    }
    let brotli = server.send(&post("/", "content-encoding: br\r\n", b"?"));
    assert_eq!((brotli.status, brotli.header("accept-encoding")), (415, Some("gzip, deflate, zstd")));
    assert_eq!(brotli.text(), "unsupported content-encoding `br`; supported: gzip, deflate, zstd");
    assert_eq!(server.send(&post("/", "content-encoding: gzip\r\n", b"?")).status, 400);
}

#[test]
fn requests_are_logged_without_their_query() {
    let server = TestServer::start(|_| {});
    server.send(&get("/path?secret", ""));
    let expected = "request method=GET path=/path status=200 micros=";
    eventually("the request is logged", || server.log().contains(expected));
    assert!(!server.log().contains("secret"), "{}", server.log());
}

#[test]
fn requests_are_served_while_the_handler_is_loading() {
    let (release, wait) = std::sync::mpsc::channel();
    let load = move || {
        wait.recv().ok();
        Ok(())
    };
    let (server, is_ready) = TestServer::launch(|_| {}, load);
    assert_eq!(server.send(&get("/", "")).status, 200);
    assert!(is_ready.try_recv().is_err());
    release.send(()).unwrap();
    is_ready.recv().unwrap();
}
