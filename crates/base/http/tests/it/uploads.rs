//! Uploads in chunks to servers that lose connections and chunks.

use std::io::Cursor;
use std::sync::{Arc, Mutex};

use cudock_base::Secret;
use cudock_http::{HttpErrorKind, NoProgress, Upload, UploadError, UploadSession};

use crate::{QUICK, client, url};
use cudock_testkit::http::{Reply, Request, Server, noise};

const UPLOAD: Upload<'static> =
    Upload { name: "blob", progress: &NoProgress, retries: QUICK, chunk_size: 100_000 };

type Content = Arc<Mutex<Vec<u8>>>;

/// `0-9` or `bytes 0-9/10`: the first byte.
fn first_byte(request: &Request) -> Option<usize> {
    let range = request.header("content-range")?;
    range.trim_start_matches("bytes ").split('-').next()?.parse().ok()
}

/// A registry that fails the nth request in the way that `fault` says.
fn registry(fault: impl Fn(usize, &Request) -> Option<Reply> + Send + Sync + 'static) -> (Server, Content) {
    let content: Content = Arc::default();
    let (stored, count) = (Arc::clone(&content), Mutex::new(0));
    let server = Server::start(move |request| {
        let number = {
            let mut count = count.lock().unwrap();
            *count += 1;
            *count - 1
        };
        if let Some(reply) = fault(number, request) {
            return reply;
        }
        let mut stored = stored.lock().unwrap();
        let status = match request.method.as_str() {
            "PATCH" if first_byte(request) == Some(stored.len()) => {
                stored.extend(&request.body);
                202
            }
            "PATCH" => 416,
            _ => 204,
        };
        let last = stored.len().saturating_sub(1);
        let next = format!("upload?state={number}");
        Reply::new(status, "").with("Range", format!("0-{last}")).with("Location", next)
    });
    (server, content)
}

#[test]
fn a_registry_gets_every_byte_once() {
    let (server, stored) = registry(|_, _| None);
    let (content, client) = (noise(250_000), client());
    let token = Secret::new("Bearer x");
    let mut session = UploadSession::patch(&client, url(&server, "/v2/upload"), Some(token));
    UPLOAD.run(&mut Cursor::new(&content), 250_000, &mut session, false).unwrap();
    assert_eq!(*stored.lock().unwrap(), content);
    assert!(session.url().ends_with("/v2/upload?state=2"), "{}", session.url());
    let ranges: Vec<_> =
        server.requests().iter().map(|request| request.header("content-range").unwrap().to_owned()).collect();
    assert_eq!(ranges, ["0-99999", "100000-199999", "200000-249999"]);
    assert!(server.requests().iter().all(|request| request.header("authorization") == Some("Bearer x")));
}

#[test]
fn an_upload_continues_at_the_offset_that_the_server_confirms() {
    let (server, stored) = registry(|number, _| match number {
        // The first chunk arrives, and its reply is an error; the second is lost.
        1 => Some(Reply::new(503, "")),
        _ => None,
    });
    let (content, client) = (noise(250_000), client());
    let mut session = UploadSession::patch(&client, url(&server, "/upload"), None);
    UPLOAD.run(&mut Cursor::new(&content), 250_000, &mut session, false).unwrap();
    assert_eq!(*stored.lock().unwrap(), content);
    let methods: Vec<_> = server.requests().iter().map(|request| request.method.clone()).collect();
    assert_eq!(methods, ["PATCH", "PATCH", "GET", "PATCH", "PATCH"]);
}

#[test]
fn an_upload_of_an_earlier_run_is_resumed() {
    let (server, stored) = registry(|_, _| None);
    let (content, client) = (noise(250_000), client());
    stored.lock().unwrap().extend(&content[..130_000]);
    let mut session = UploadSession::patch(&client, url(&server, "/upload"), None);
    UPLOAD.run(&mut Cursor::new(&content), 250_000, &mut session, true).unwrap();
    assert_eq!(*stored.lock().unwrap(), content);
    // A process that does not know the offset learns it from 416.
    stored.lock().unwrap().truncate(70_000);
    let mut session = UploadSession::patch(&client, url(&server, "/upload"), None);
    UPLOAD.run(&mut Cursor::new(&content), 250_000, &mut session, false).unwrap();
    assert_eq!(*stored.lock().unwrap(), content);
}

#[test]
fn a_server_that_never_takes_a_chunk_is_given_up() {
    let (content, client) = (noise(1000), client());
    for (reply, attempts) in [
        (Reply::new(202, "").with("Range", "0-0"), 4),
        (Reply::new(202, "").with("Range", "0-99999"), 1),
        (Reply::new(403, ""), 1),
        (Reply::new(500, ""), 4),
    ] {
        let status = reply.status;
        let server = Server::start(move |request| match request.method.as_str() {
            "PATCH" => reply.clone(),
            _ => Reply::new(204, "").with("Range", "0-0"),
        });
        let mut session = UploadSession::patch(&client, url(&server, "/upload"), None);
        let error = UPLOAD.run(&mut Cursor::new(&content), 1000, &mut session, false).unwrap_err();
        match (status, error) {
            (202, UploadError::Offset { sent: 1000, .. }) => {}
            (_, UploadError::Request(error)) => assert_eq!(error.kind, HttpErrorKind::Status(status)),
            (_, error) => panic!("{status}: {error:?}"),
        }
        assert_eq!(server.count("/upload") - count_of(&server, "GET"), attempts, "{status}");
    }
}

fn count_of(server: &Server, method: &str) -> usize {
    server.requests().iter().filter(|request| request.method == method).count()
}

#[test]
fn a_next_url_elsewhere_gets_no_authorization_and_follows_the_rules_of_redirects() {
    let content = noise(150_000);
    let elsewhere = registry(|_, _| None);
    let next = url(&elsewhere.0, "/upload");
    let (server, stored) = registry({
        let stored = Arc::clone(&elsewhere.1);
        move |_, request| {
            stored.lock().unwrap().extend(&request.body);
            Some(Reply::new(202, "").with("Range", "0-99999").with("Location", next.clone()))
        }
    });
    let client = client();
    let mut session = UploadSession::patch(&client, url(&server, "/upload"), Some(Secret::new("Bearer x")));
    UPLOAD.run(&mut Cursor::new(&content), 150_000, &mut session, false).unwrap();
    assert!(stored.lock().unwrap().is_empty());
    assert_eq!(*elsewhere.1.lock().unwrap(), content);
    assert_eq!(elsewhere.0.requests()[0].header("authorization"), None);

    let server = Server::start(|_| Reply::new(202, "").with("Location", "http://example.com/upload"));
    let mut session = UploadSession::patch(&client, url(&server, "/upload"), None);
    let error = UPLOAD.run(&mut Cursor::new(&content), 150_000, &mut session, false).unwrap_err();
    assert!(matches!(error, UploadError::Request(error) if error.kind == HttpErrorKind::PlainHttp));
}

#[test]
fn a_source_that_is_too_short_is_an_error() {
    let (server, _) = registry(|_, _| None);
    let client = client();
    let mut session = UploadSession::patch(&client, url(&server, "/upload"), None);
    let error = UPLOAD.run(&mut Cursor::new(b"short"), 100, &mut session, false).unwrap_err();
    assert!(matches!(error, UploadError::Source(_)), "{error:?}");
}

/// A storage service: 308 until all bytes are there.
fn storage(lose: &'static [usize]) -> (Server, Content) {
    let content: Content = Arc::default();
    let (stored, count) = (Arc::clone(&content), Mutex::new(0));
    let server = Server::start(move |request| {
        let mut count = count.lock().unwrap();
        *count += 1;
        let mut stored = stored.lock().unwrap();
        let (range, total) = request.header("content-range").unwrap().split_once('/').unwrap();
        if range != "bytes *" && !lose.contains(&*count) {
            assert_eq!(first_byte(request), Some(stored.len()));
            stored.extend(&request.body);
        }
        match stored.len() {
            _ if lose.contains(&*count) => Reply::new(502, ""),
            length if length == total.parse::<usize>().unwrap() => Reply::new(201, ""),
            0 => Reply::new(308, ""),
            length => Reply::new(308, "").with("Range", format!("bytes=0-{}", length - 1)),
        }
    });
    (server, content)
}

#[test]
fn a_storage_service_is_queried_for_the_offset_and_gets_the_total() {
    let (content, client) = (noise(250_000), client());
    let (server, stored) = storage(&[1, 3]);
    let mut session = UploadSession::put(&client, url(&server, "/blob"), None);
    UPLOAD.run(&mut Cursor::new(&content), 250_000, &mut session, false).unwrap();
    assert_eq!(*stored.lock().unwrap(), content);
    let ranges: Vec<_> =
        server.requests().iter().map(|request| request.header("content-range").unwrap().to_owned()).collect();
    assert_eq!(
        ranges,
        [
            "bytes 0-99999/250000",
            "bytes */250000",
            "bytes 0-99999/250000",
            "bytes */250000",
            "bytes 0-99999/250000",
            "bytes 100000-199999/250000",
            "bytes 200000-249999/250000"
        ]
    );
    let (server, stored) = storage(&[]);
    let mut session = UploadSession::put(&client, url(&server, "/empty"), None);
    UPLOAD.run(&mut Cursor::new(b""), 0, &mut session, false).unwrap();
    assert_eq!((stored.lock().unwrap().len(), server.requests().len()), (0, 1));
}
