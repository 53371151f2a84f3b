//! Methods, bodies, headers, redirects, conditions.

use std::io::Read;
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Duration;

use cudock_base::Secret;
use cudock_http::{Client, HttpErrorKind, Method, NoProgress, Request, describe_read_error};
use serde::{Deserialize, Serialize};

use crate::{QUICK, client, url};
use cudock_testkit::http::{Reply, Server, Then, noise, read_request, secret};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Size {
    name: String,
    cores: u32,
}

#[test]
fn every_method_is_sent_with_its_body() {
    let server = Server::start(|_| Reply::new(200, "ok"));
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
        let request = Request::new(method.clone(), url(&server, "/x")).body("text/plain", "hello");
        assert_eq!(client().send(&request).unwrap().bytes(10).unwrap(), b"ok");
        let sent = server.requests().pop().unwrap();
        assert_eq!((sent.method.as_str(), sent.text().as_str()), (method.as_str(), "hello"));
        assert_eq!(sent.header("content-type"), Some("text/plain"));
        assert_eq!(sent.header("accept-encoding"), Some("identity"));
    }
    client().send(&Request::new(Method::DELETE, url(&server, "/x"))).unwrap();
    let head = client().send(&Request::new(Method::HEAD, url(&server, "/x"))).unwrap();
    assert_eq!(head.status(), 200);
    assert_eq!(server.requests().pop().unwrap().method, "HEAD");
}

#[test]
fn json_goes_both_ways_within_a_limit() {
    let server = Server::start(|request| match request.path.as_str() {
        "/echo" => Reply::new(201, request.body.clone()),
        "/cut" => Reply::new(200, "{\"name\":\"x\","),
        "/other" => Reply::new(200, "{\"name\":\"swordfish\",\"cores\":\"swordfish\"}"),
        _ => Reply::new(200, format!("{{\"name\":\"{}\",\"cores\":1}}", "x".repeat(2000))).chunked(),
    });
    let size = Size { name: "NC4as_T4_v3".to_owned(), cores: 4 };
    let request = Request::new(Method::PUT, url(&server, "/echo")).json(&size).unwrap();
    assert_eq!(client().send_for_json::<Size>(&request, 1000).unwrap(), size);
    let sent = server.requests().pop().unwrap();
    assert_eq!(sent.header("content-type"), Some("application/json"));
    let kind = |path: &str| {
        let result = client().send_for_json::<Size>(&Request::get(url(&server, path)), 1000);
        let error = result.unwrap_err();
        assert!(!error.to_string().contains("swordfish"), "{error}");
        error.kind
    };
    assert_eq!(kind("/large"), HttpErrorKind::TooLarge);
    assert_eq!(kind("/cut"), HttpErrorKind::Transient);
    assert_eq!(kind("/other"), HttpErrorKind::Malformed);
}

#[test]
fn a_form_is_encoded() {
    let server = Server::start(|_| Reply::new(200, ""));
    let request = Request::new(Method::POST, url(&server, "/")).form(&[("a b", "c&d"), ("e", "é")]);
    client().send(&request).unwrap();
    let sent = server.requests().pop().unwrap();
    assert_eq!(sent.text(), "a%20b=c%26d&e=%C3%A9");
    assert_eq!(sent.header("content-type"), Some("application/x-www-form-urlencoded"));
}

#[test]
fn bodies_are_streamed_up_and_down() {
    let content = noise(3_000_000);
    let server = Server::start(|request| Reply::new(200, request.body.clone()).chunked());
    for length in [Some(3_000_000), None] {
        let request = Request::new(Method::PUT, url(&server, "/")).header("X-Test", "1");
        let response = client().send_stream(&request, &mut content.as_slice(), length).unwrap();
        let mut echoed = Vec::new();
        response.into_reader().read_to_end(&mut echoed).unwrap();
        assert_eq!(echoed, content);
        let sent = server.requests().pop().unwrap();
        assert_eq!(sent.header("content-length").is_some(), length.is_some());
    }
    // Not a byte more than the length is sent.
    let request = Request::new(Method::PUT, url(&server, "/"));
    client().send_stream(&request, &mut content.as_slice(), Some(10)).unwrap();
    assert_eq!(server.requests().pop().unwrap().body, &content[..10]);
}

#[test]
fn a_stream_that_ends_early_is_an_error() {
    let server = Server::start(|_| Reply::new(200, ""));
    let request = Request::new(Method::PUT, url(&server, "/")).deadline(Duration::from_secs(2));
    assert!(client().send_stream(&request, &mut b"123".as_slice(), Some(10)).is_err());
    let server = Server::start(|_| Reply::new(200, noise(10_000)).cut_after(100));
    let response = client().send(&Request::get(url(&server, "/"))).unwrap();
    let error = response.into_reader().read_to_end(&mut Vec::new()).unwrap_err();
    assert!(!describe_read_error(&error).is_empty());
}

#[test]
fn authorization_goes_to_the_first_origin_only() {
    let token: Secret = Secret::new(format!("Bearer {}", secret()));
    let elsewhere = Server::start(|_| Reply::new(200, "elsewhere"));
    let target = url(&elsewhere, "/blob?signature=1");
    let server = Server::start(move |request| match request.path.as_str() {
        "/here" => Reply::new(302, "").with("Location", "there"),
        "/there" => Reply::new(200, "there"),
        _ => Reply::new(307, "").with("Location", target.clone()),
    });
    let get = |path: &str| Request::get(url(&server, path)).authorization(Some(token.clone()));
    let response = client().send(&get("/here")).unwrap();
    assert!(response.is_from_origin() && response.url().path() == "/there");
    assert!(server.requests().iter().all(|request| request.header("authorization").is_some()));
    let response = client().send(&get("/away")).unwrap();
    assert!(!response.is_from_origin());
    assert_eq!(elsewhere.requests()[0].header("authorization"), None);
}

#[test]
fn redirects_lead_neither_in_circles_nor_astray() {
    let server = Server::start(|request| match request.path.as_str() {
        "/nowhere" => Reply::new(302, ""),
        "/plain" => Reply::new(302, "").with("Location", "http://example.com/"),
        "/file" => Reply::new(302, "").with("Location", "file:///etc/passwd"),
        "/user" => Reply::new(302, "").with("Location", "https://user@example.com/"),
        _ => Reply::new(302, "").with("Location", "/circle"),
    });
    for (path, kind) in [
        ("/circle", HttpErrorKind::Refused),
        ("/nowhere", HttpErrorKind::Refused),
        ("/plain", HttpErrorKind::PlainHttp),
        ("/file", HttpErrorKind::Refused),
        ("/user", HttpErrorKind::Refused),
    ] {
        let error = client().send(&Request::get(url(&server, path))).unwrap_err();
        assert_eq!(error.kind, kind, "{path}: {error}");
        assert!(!error.to_string().contains("example.com"), "{error}");
    }
    // What was posted is not posted elsewhere.
    let post = Request::new(Method::POST, url(&server, "/plain")).body("text/plain", "secret");
    assert_eq!(client().send(&post).unwrap().status(), 302);
}

#[test]
fn an_error_carries_the_server_s_message_without_our_secrets() {
    let token = secret();
    let server = Server::start({
        let token = token.clone();
        move |request| match request.path.as_str() {
            "/azure" => Reply::new(409, "{\"error\":{\"code\":\"Conflict\",\"message\":\"it exists\"}}"),
            "/registry" => Reply::new(404, "{\"errors\":[{\"code\":\"X\",\"message\":\"unknown\"}]}"),
            "/docker" => Reply::new(500, "{\"message\":\"no space left\"}"),
            "/page" => Reply::new(502, "<html>").with("Content-Type", "text/html; charset=utf-8"),
            "/busy" => Reply::new(429, "slow\x1b[31m down").with("Retry-After", "7"),
            _ => Reply::new(403, format!("token {token} is not valid")),
        }
    });
    let error = |path: &str| {
        let authorization = Some(Secret::new(format!("Bearer {token}")));
        let request = Request::get(url(&server, path)).authorization(authorization);
        client().send(&request).unwrap().error_for_status().unwrap_err()
    };
    assert_eq!(error("/azure").to_string(), "server returned 409 Conflict: it exists");
    assert_eq!(error("/registry").to_string(), "server returned 404 Not Found: unknown");
    assert_eq!(error("/docker").to_string(), "server returned 500 Internal Server Error: no space left");
    assert_eq!(error("/page").to_string(), "server returned 502 Bad Gateway");
    assert_eq!(error("/denied").to_string(), "server returned 403 Forbidden: token … is not valid");
    let busy = error("/busy");
    assert_eq!(busy.to_string(), "server returned 429 Too Many Requests: slow [31m down");
    assert_eq!((busy.kind, busy.retry_after), (HttpErrorKind::Status(429), Some(Duration::from_secs(7))));
}

#[test]
fn a_request_is_repeated_until_the_server_is_back() {
    let server = Server::start({
        let count = std::sync::atomic::AtomicUsize::new(0);
        move |_| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::new(503, ""),
            1 => Reply::new(200, "[1").with("X", "cut"),
            _ => Reply::new(200, "[1]"),
        }
    });
    let request = Request::get(url(&server, "/"));
    let read: Vec<u32> = QUICK.run(&NoProgress, "list", || client().send_for_json(&request, 100)).unwrap();
    assert_eq!((read, server.requests().len()), (vec![1], 3));
}

#[test]
fn a_deadline_holds_against_a_server_that_drips() {
    let server = Server::start(|_| Reply { then: Then::Stall, ..Reply::new(200, noise(1000)).cut_after(10) });
    let request = Request::get(url(&server, "/")).deadline(Duration::from_millis(200));
    let mut response = client().send(&request).unwrap();
    let error = response.bytes(1000).unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Transient);
    assert!(error.to_string().contains("timed out"), "{error}");
}

#[test]
fn a_unix_socket_serves_requests() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let request = read_request(&stream).unwrap();
        Reply::new(200, request.path).send(&mut stream).unwrap();
    });
    let client = Client::over_unix_socket(&socket, Duration::from_secs(10));
    let mut response = client.send(&Request::get("http://localhost/images/x")).unwrap();
    assert_eq!(response.bytes(100).unwrap(), b"/images/x");
    server.join().unwrap();
    let error = client.send(&Request::get("http://localhost/")).unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Transient, "{error}");
}
