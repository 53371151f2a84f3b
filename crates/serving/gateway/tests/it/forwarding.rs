//! Requests and answers that are passed on as they are.

use std::io::Write;
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc;

use cudock_base::Environment;
use cudock_server::ApiKeys;
use cudock_testkit::client::{self, get, post};
use cudock_testkit::http::{Reply, Server, noise};
use cudock_trace::ExportSettings;

use crate::support::{JSON, TestGateway, answer, echo, raw_upstream};

#[test]
fn method_path_headers_and_body_reach_the_upstream_and_its_answer_the_client() {
    let upstream = Server::start(|request| match request.path.as_str() {
        "/health" => Reply::new(200, ""),
        _ => Reply::new(418, "short and stout")
            .with("x-kind", "teapot")
            .with("set-cookie", "a=1")
            .with("keep-alive", "timeout=5"),
    });
    let gateway = TestGateway::start(&[upstream.address()], "allow_hosts = ['shop.example']");
    let request = "PATCH /pots/1?size=2&a=%20b HTTP/1.1\r\nhost: shop.example\r\nx-own: 7\r\nconnection: x-hop\r\n\
                   x-hop: 1\r\nte: trailers\r\ncontent-length: 3\r\n\r\ntea";
    let response = gateway.send(request.as_bytes());
    assert_eq!((response.status, response.text().as_str()), (418, "short and stout"));
    assert_eq!((response.header("x-kind"), response.header("set-cookie")), (Some("teapot"), Some("a=1")));
    assert_eq!(response.header("keep-alive"), None);
    let requests = upstream.requests();
    let seen = requests.iter().find(|request| request.method == "PATCH").unwrap();
    assert_eq!((seen.path.as_str(), seen.text().as_str()), ("/pots/1?size=2&a=%20b", "tea"));
    let host = upstream.host();
    for (name, value) in [
        ("host", Some(host.as_str())),
        ("x-own", Some("7")),
        ("x-hop", None),
        ("te", None),
        ("x-forwarded-for", Some("127.0.0.1")),
        ("x-forwarded-host", Some("shop.example")),
        ("x-forwarded-proto", Some("http")),
        ("via", Some("1.1 cudock")),
        ("content-length", Some("3")),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
}

#[test]
fn the_path_of_an_upstream_comes_before_that_of_requests() {
    let upstream = Server::start(|request| match request.path.as_str() {
        "/team/health" => Reply::new(200, ""),
        path => Reply::new(200, path.to_owned()),
    });
    let options = format!("to = ['http://{}/team/']\nhealth_path = '/health'", upstream.address());
    let gateway = TestGateway::with_options(&options, |_| {});
    assert_eq!(gateway.send(&get("/a?b", "")).text(), "/team/a?b");
}

#[test]
fn large_bodies_pass_in_both_directions_with_and_without_a_length() {
    let upstream = Server::start(|request| match request.path.as_str() {
        "/chunked" => Reply::new(200, request.body.clone()).chunked(),
        _ => echo(request),
    });
    let gateway = TestGateway::start(&[upstream.address()], "");
    let body = noise(3 << 20);
    assert!(gateway.send(&post("/whole", "", &body)).body == body);
    let mut chunked =
        b"POST /chunked HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(100_000) {
        write!(chunked, "{:x}\r\n", chunk.len()).unwrap();
        chunked.extend([chunk, b"\r\n"].concat());
    }
    chunked.extend(b"0\r\n\r\n");
    assert!(gateway.send(&chunked).body == body);
}

#[test]
fn events_pass_one_by_one() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let upstream = raw_upstream(move |mut stream, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        for event in 0..3 {
            let text = format!("data: {event}\n\n");
            stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).unwrap();
            // The next event is written once the client has this one.
            released.lock().unwrap().recv().unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
    });
    let gateway = TestGateway::start(&[upstream], "");
    let mut client = gateway.connect();
    client.write(&post("/v1/chat/completions", JSON, b"{\"stream\":true}"));
    let head = String::from_utf8(client.read_until(b"\r\n\r\n")).unwrap();
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    for event in 0..3 {
        assert_eq!(client.chunk(), format!("data: {event}\n\n").as_bytes());
        release.send(()).unwrap();
    }
    assert!(client.chunk().is_empty());
}

#[test]
fn clients_may_use_http2() {
    if cudock_testkit::require_program("curl").is_none() {
        return;
    }
    let upstream = Server::start(echo);
    let gateway = TestGateway::start(&[upstream.address()], "");
    for (path, expected) in [("/predict", answer("[7]")), ("/other", "{\"input\":[7]}".to_owned())] {
        let output = Command::new("curl")
            .args(["-sS", "--http2-prior-knowledge", "-H", "content-type: application/json"])
            .args([
                "-d",
                "{\"input\":[7]}",
                "-w",
                " %{http_version}",
                &format!("http://{}{path}", gateway.address),
            ])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{expected} 2"));
    }
    let requests = upstream.requests();
    let own = gateway.address.to_string();
    let forwarded = requests.iter().filter(|request| request.header("x-forwarded-host") == Some(&own));
    assert_eq!(forwarded.count(), 2);
}

#[test]
fn keys_of_the_gateway_are_required_and_not_forwarded() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "k1\n").unwrap();
    let keys = ApiKeys::from_file(file.path()).unwrap();
    let upstream = Server::start(echo);
    let options = format!("to = ['{}']", upstream.address());
    let gateway = TestGateway::with_options(&options, |settings| settings.server.keys = keys);
    for (path, headers, status) in [
        ("/x", "", 401),
        ("/_gateway/metrics", "", 401),
        ("/_gateway/health", "x-api-key: k2\r\n", 401),
        ("/_gateway/live", "", 200),
        ("/x", "authorization: Bearer k1\r\n", 200),
        ("/_gateway/health", "x-api-key: k1\r\n", 200),
    ] {
        assert_eq!(gateway.send(&get(path, headers)).status, status, "{path} {headers}");
    }
    let requests = upstream.requests();
    assert!(requests.iter().all(|request| request.header("authorization").is_none()));
    assert_eq!(upstream.count("/x"), 1);
}

#[test]
fn an_upstream_with_tls_is_verified_by_its_certificate() {
    if cudock_testkit::require_program("openssl").is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = client::certificate(directory.path(), "own");
    let (other, _) = client::certificate(directory.path(), "other");
    let upstream = Server::start(echo);
    // A gateway with TLS is the upstream of the one under test.
    let files = cudock_server::TlsFiles { certificate: certificate.clone(), key };
    let secure = TestGateway::with_options(&format!("to = ['{}']", upstream.address()), |settings| {
        settings.server.tls = Some(files);
    });
    let port = secure.address.port();
    for (trusted, status) in [(&certificate, 200), (&other, 503)] {
        let options =
            format!("to = ['https://localhost:{port}']\nhold = '2s'\nupstream_ca = '{}'", trusted.display());
        let gateway = TestGateway::with_options(&options, |_| {});
        assert_eq!(gateway.predict("{\"input\":[1]}").status, status);
    }
    let requests = upstream.requests();
    let seen = requests.iter().find(|request| request.path == "/predict").unwrap();
    assert_eq!(seen.header("x-forwarded-proto"), Some("http"), "as the first gateway saw the client");
}

#[test]
fn unknown_paths_of_the_gateway_and_tunnels_are_not_forwarded() {
    let upstream = Server::start(echo);
    let gateway = TestGateway::start(&[upstream.address()], "");
    assert_eq!(gateway.send(&get("/_gateway/other", "")).status, 404);
    assert_eq!(gateway.send(b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n").status, 400);
    assert_eq!(upstream.count("_gateway"), 0);
}

#[test]
fn the_span_of_a_request_is_the_parent_of_that_of_the_upstream() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let (upstream, collector) = (Server::start(echo), Server::start(|_| Reply::new(200, "")));
    let endpoint = format!("http://{}", collector.address());
    let environment = Environment::of::<&str, &str>("/", []);
    let telemetry = ExportSettings::new(Some(&endpoint), "cudock-gateway", &environment).unwrap();
    let options = format!("to = ['http://{}']", upstream.address());
    let gateway = TestGateway::with_options(&options, |settings| settings.telemetry = telemetry);
    let client = format!("{JSON}traceparent: 00-{TRACE}-b7ad6b7169203331-01\r\ntracestate: a=b\r\n");
    for request in [get("/other", &client), post("/predict", &client, b"{\"input\":[1]}")] {
        assert_eq!(gateway.send(&request).status, 200);
    }
    drop(gateway);
    let sent: Vec<u8> = collector.requests().into_iter().flat_map(|request| request.body).collect();
    let is_sent = |hex: &str| {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(digit).collect();
        sent.windows(bytes.len()).any(|part| part == bytes)
    };
    assert!(is_sent(TRACE));
    for seen in upstream.requests().iter().filter(|request| request.path != "/health") {
        let parent = seen.header("traceparent").unwrap();
        let span = parent.strip_prefix(&format!("00-{TRACE}-")).and_then(|rest| rest.strip_suffix("-01"));
        let span = span.unwrap_or_else(|| panic!("{parent}"));
        assert!(span != "b7ad6b7169203331" && is_sent(span), "{parent}");
        assert_eq!(seen.header("tracestate"), Some("a=b"));
    }
}

#[test]
fn a_client_that_is_too_fast_gets_a_retry_after_header() {
    let upstream = Server::start(echo);
    let gateway = TestGateway::start(&[upstream.address()], "rate_limit = '1/s:2'");
    for _ in 0..2 {
        assert_eq!(gateway.predict("{\"input\":[1]}").status, 200);
    }
    let response = gateway.predict("{\"input\":[1]}");
    assert_eq!((response.status, response.header("retry-after")), (429, Some("1")));
    assert_eq!(gateway.send(&get("/_gateway/live", "")).status, 200, "probes are not counted");
}
