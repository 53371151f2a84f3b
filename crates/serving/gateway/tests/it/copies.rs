//! What the clients of one batch get of the headers of its answer, and the upstream of theirs.

use cudock_testkit::client::{TestClient, eventually, post};
use cudock_testkit::http::Reply;

use crate::support::{JSON, TestGateway, answer, echo, gated};

/// Queues requests behind one that is running, so that those that may share a batch do.
fn queue(gateway: &TestGateway, headers: &[&str]) -> Vec<TestClient> {
    let mut clients = Vec::new();
    for (index, headers) in headers.iter().enumerate() {
        let mut client = gateway.connect();
        let body = format!("{{\"input\":[{index}]}}");
        client.write(&post("/predict", &format!("{JSON}{headers}"), body.as_bytes()));
        gateway.until("upstream_queue_rows", u32::try_from(index + 1).unwrap());
        clients.push(client);
    }
    clients
}

#[test]
fn each_client_gets_only_headers_that_are_true_of_its_part() {
    let kept = [
        ("content-type", "application/json"),
        ("content-language", "en"),
        ("cache-control", "no-store"),
        ("access-control-allow-origin", "https://app.example"),
        ("x-model-version", "7"),
    ];
    let dropped = [
        ("digest", "SHA-256=AA=="),
        ("content-digest", "sha-256=:AA==:"),
        ("repr-digest", "sha-256=:AA==:"),
        ("content-md5", "AA=="),
        ("content-range", "rows 0-3/4"),
        ("etag", "\"1\""),
        ("last-modified", "Mon, 06 Jul 2026 00:00:00 GMT"),
        ("set-cookie", "session=ann"),
        ("x-request-id", "1"),
        ("x-user", "ann"),
        ("x-row-count", "3"),
        ("x-checksum", "1234"),
    ];
    let (upstream, gateway, gate) = gated("shared_headers = ['X-Model-Version']", move |request| {
        let reply = echo(request);
        kept[1..].iter().chain(&dropped).fold(reply, |reply, (name, value)| reply.with(name, *value))
    });
    let mut first = gateway.ask("{\"input\":[0]}");
    eventually("the first request is with the server", || upstream.count("/predict") == 1);
    let mut clients = queue(&gateway, &[""; 3]);
    gate.open(2);
    // It is the same for a batch of one request, so that answers do not depend on the load.
    for (row, client) in [0, 0, 1, 2].iter().zip([&mut first].into_iter().chain(&mut clients)) {
        let response = client.receive();
        assert_eq!(response.text(), answer(&format!("[{row}]")));
        for (name, value) in kept {
            assert_eq!(response.header(name), Some(value), "{name}");
        }
        for (name, _) in dropped {
            assert_eq!(response.header(name), None, "{name}");
        }
    }
    assert_eq!(upstream.count("/predict"), 2);
}

#[test]
fn the_answer_to_one_request_that_is_not_split_keeps_its_headers() {
    let (upstream, gateway, gate) = gated("", |_| {
        Reply::new(422, "bad").with("set-cookie", "a=1").with("x-own", "1").with("content-encoding", "x-own")
    });
    gate.open(1);
    let response = gateway.predict("{\"input\":[0]}");
    assert_eq!((response.status, response.text().as_str()), (422, "bad"));
    for (name, value) in [("set-cookie", "a=1"), ("x-own", "1"), ("content-encoding", "x-own")] {
        assert_eq!(response.header(name), Some(value));
    }
    drop(upstream);
}

#[test]
fn a_redirect_or_a_status_about_one_request_is_not_shared() {
    for status in [202, 204, 206, 302, 307] {
        let (upstream, gateway, gate) = gated("", move |request| {
            if request.method == "GET" {
                return Reply::new(200, "");
            }
            let row = request.text().replace(|letter: char| !letter.is_ascii_digit(), "");
            Reply::new(status, "").with("location", format!("/results/{row}"))
        });
        let mut first = gateway.ask("{\"input\":[0]}");
        eventually("the first request is with the server", || upstream.count("/predict") == 1);
        let mut clients = queue(&gateway, &[""; 3]);
        gate.open(100);
        assert_eq!(first.receive().header("location"), Some("/results/0"));
        for (row, client) in clients.iter_mut().enumerate() {
            let response = client.receive();
            let location = format!("/results/{row}");
            assert_eq!((response.status, response.header("location")), (status, Some(location.as_str())));
        }
    }
}

#[test]
fn pages_of_one_origin_share_batches_and_get_the_headers_of_cors() {
    let (upstream, gateway, gate) = gated("", |request| {
        let origin = request.header("origin").unwrap_or("none").to_owned();
        echo(request).with("access-control-allow-origin", origin).with("vary", "origin")
    });
    let mut first = gateway.ask("{\"input\":[9]}");
    eventually("the first request is with the server", || upstream.count("/predict") == 1);
    let origins = ["https://a.example", "https://b.example", "https://a.example", "https://b.example"];
    let headers = origins.map(|origin| format!("origin: {origin}\r\n"));
    let mut clients = queue(&gateway, &headers.each_ref().map(String::as_str));
    gate.open(100);
    first.receive();
    for (origin, client) in origins.iter().zip(&mut clients) {
        let response = client.receive();
        assert_eq!(response.header("access-control-allow-origin"), Some(*origin));
        assert_eq!(response.header("vary"), Some("origin"));
    }
    assert_eq!(upstream.count("/predict"), 3, "one batch for each origin");
}

#[test]
fn headers_that_all_requests_of_a_batch_have_reach_the_upstream_and_others_do_not() {
    let (upstream, gateway, gate) = gated("ignore_headers = ['x-session']", echo);
    let mut first = gateway.ask("{\"input\":[9]}");
    eventually("the first request is with the server", || upstream.count("/predict") == 1);
    let mut clients = queue(
        &gateway,
        &[
            "user-agent: sdk/1\r\nx-request-id: 1\r\nx-session: a\r\nx-user: ann\r\nx-timeout-ms: 90000\r\n",
            "user-agent: sdk/1\r\nx-request-id: 2\r\nx-session: b\r\nx-user: ann\r\n",
        ],
    );
    gate.open(100);
    first.receive();
    for client in &mut clients {
        assert_eq!(client.receive().status, 200);
    }
    let requests = upstream.requests();
    let batch = requests.iter().rfind(|request| request.path == "/predict").unwrap();
    assert_eq!(batch.text(), "{\"input\":[[0],[1]]}");
    for (name, value) in [
        ("user-agent", Some("sdk/1")),
        ("x-user", Some("ann")),
        ("x-forwarded-for", Some("127.0.0.1")),
        ("via", Some("1.1 cudock")),
        ("x-request-id", None),
        ("x-session", None),
        ("x-timeout-ms", None),
    ] {
        assert_eq!(batch.header(name), value, "{name}");
    }
}
