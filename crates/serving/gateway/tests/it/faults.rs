//! Upstreams that are dead, slow, half-closed, wrong, or restarted.

use std::io::Write;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use cudock_testkit::client::{TestClient, eventually, get, post};
use cudock_testkit::http::{Reply, Server};

use crate::support::{JSON, LogLines, TestGateway, answer, echo, free_address, prediction, raw_upstream};

#[test]
fn a_dead_upstream_is_an_error_once_the_hold_is_over() {
    let gateway = TestGateway::start(&[free_address()], "hold = '50ms'");
    for response in [gateway.predict("{\"input\":[1]}"), gateway.send(&get("/other", ""))] {
        assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
        assert!(response.text().contains("no upstream is available"), "{}", response.text());
    }
    let health = gateway.send(&get("/_gateway/health", ""));
    assert!(health.status == 503 && health.text().contains("\"unavailable\""), "{}", health.text());
    assert_eq!(gateway.send(&get("/_gateway/ready", "")).status, 503);
    assert_eq!(gateway.send(&get("/_gateway/live", "")).status, 200);
}

#[test]
fn a_slow_upstream_is_a_timeout() {
    let upstream = raw_upstream(|stream, _| {
        // Silent until the gateway hangs up.
        let _ = std::io::copy(&mut &stream, &mut std::io::sink());
    });
    let gateway = TestGateway::start(&[upstream], "timeout = '50ms'");
    for response in [gateway.predict("{\"input\":[1]}"), gateway.send(&post("/other", "", b"x"))] {
        assert_eq!(response.status, 504);
        assert!(response.text().contains("did not answer within 50 ms"), "{}", response.text());
    }
}

#[test]
fn an_upstream_that_hangs_up_without_an_answer_is_an_error() {
    let upstream = raw_upstream(|stream, _| stream.shutdown(Shutdown::Both).unwrap());
    let gateway = TestGateway::start(&[upstream], "");
    for response in [gateway.predict("{\"input\":[1]}"), gateway.send(&post("/other", "", b"x"))] {
        assert_eq!(response.status, 502);
        assert!(
            response.text().contains(&format!("upstream http://{upstream} failed")),
            "{}",
            response.text()
        );
    }
}

#[test]
fn an_upstream_that_closes_its_side_early_is_not_taken_for_complete() {
    let upstream = raw_upstream(|mut stream, _| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"prediction\":[[1]]}").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = std::io::copy(&mut &stream, &mut std::io::sink());
    });
    let gateway = TestGateway::start(&[upstream], "");
    assert_eq!(gateway.predict("{\"input\":[1]}").status, 502);
    let mut client = gateway.connect();
    client.write(&get("/other", ""));
    let rest = String::from_utf8(client.rest()).unwrap();
    assert!(rest.contains("content-length: 100") && rest.ends_with("{\"prediction\":[[1]]}"), "{rest}");
}

#[test]
fn requests_whose_answers_cannot_be_split_are_sent_as_they_are_and_the_log_says_why() {
    let set = "set the key of the list of rows with --output-key";
    let unknown = "--output-key result if it has one element per row, --shared-key result if it is the same for \
                   all rows";
    for (body, reason, hint) in [
        ("", "neither a JSON object nor a list", ""),
        ("<html>oops</html>", "neither a JSON object nor a list", ""),
        ("{\"prediction\":[[1],[2]]", "neither a JSON object nor a list", ""),
        ("{\"status\":\"ok\"}", "no list of rows", set),
        ("{\"result\":[1,2]}", "`result` is a list or an object", unknown),
        ("{\"prediction\":[1,2],\"result\":{}}", "`result` is a list or an object", unknown),
        ("{\"prediction\":[1],\"result\":[]}", "`result` is a list or an object", unknown),
        ("{\"prediction\":1}", "`prediction` is not a list with one element per row", set),
        ("{\"prediction\":[1]}", "`prediction` has 1 elements for 2 rows", set),
        ("{\"prediction\":[1,2,3]}", "`prediction` has 3 elements for 2 rows", set),
        ("{\"prediction\":[]}", "`prediction` has 0 elements for 2 rows", set),
        ("[1,2,3]", "the list has 3 elements for 2 rows", set),
    ] {
        let upstream = Server::start(move |_| Reply::new(200, body).with("x-own", "7"));
        let log = LogLines::default();
        let gateway = TestGateway::with_log(&[upstream.address()], "", &log);
        for sent in 0..3 {
            let response = gateway.predict("{\"input\": [[1],[2]]}");
            assert_eq!((response.status, response.text().as_str()), (200, body));
            assert_eq!(response.header("x-own"), Some("7"), "{body}");
            // Once in a batch, and then as the client has written it.
            assert_eq!(upstream.count("/predict"), 2 + sent, "{body}");
        }
        let requests = upstream.requests();
        let predictions = requests.iter().filter(|request| request.path == "/predict");
        assert!(predictions.skip(1).all(|request| request.text() == "{\"input\": [[1],[2]]}"));
        let url = format!("http://{}", upstream.address());
        let hint = if hint.is_empty() { String::new() } else { format!(" hint={hint:?}") };
        let line = format!("requests sent one by one upstream={url} answer={reason:?}{hint}");
        assert_eq!(log.lines("one by one"), [line]);
        gateway.until("single_requests_total", 3);
    }
}

#[test]
fn an_answer_that_is_not_http_is_an_error() {
    let upstream = raw_upstream(|mut stream, _| _ = stream.write_all(b"\0\x01garbage\r\n\r\n"));
    let gateway = TestGateway::start(&[upstream], "");
    for response in [gateway.predict("{\"input\":[1]}"), gateway.send(&post("/other", "", b"x"))] {
        assert_eq!(response.status, 502, "{}", response.text());
    }
}

#[test]
fn an_upstream_that_switches_protocols_is_an_error() {
    let answer = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n";
    let upstream = raw_upstream(|mut stream, _| _ = stream.write_all(answer));
    let gateway = TestGateway::start(&[upstream], "");
    for response in [gateway.predict("{\"input\":[1]}"), gateway.send(&post("/other", "", b"x"))] {
        assert_eq!(response.status, 502, "{}", response.text());
    }
}

#[test]
fn an_answer_that_does_not_fit_into_memory_is_an_error_of_the_upstream() {
    let upstream = Server::start(|_| prediction(format!("[\"{}\"]", "a".repeat(2 << 20))));
    let gateway = TestGateway::start(&[upstream.address()], "memory = '1MiB'");
    let response = gateway.predict("{\"input\":[1]}");
    assert_eq!(response.status, 502);
    assert!(response.text().contains("does not fit into the memory budget"), "{}", response.text());
    // What is passed through is not held.
    assert_eq!(gateway.send(&get("/other", "")).body.len(), answer(&"a".repeat(2 << 20)).len() + 4);
    gateway.until("held_bytes", 0);
}

/// Sends requests from several threads and checks each answer; returns when all have theirs.
fn verified_load(gateway: &TestGateway, clients: usize, requests: usize, during: impl FnOnce()) {
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in 0..clients {
            let done = &done;
            scope.spawn(move || {
                let mut connection = TestClient::connect(gateway.address);
                for request in 0..requests {
                    // Rows of different shapes, so that buckets differ, too.
                    let row = format!("[{client}.{request}{}]", ",0".repeat(request % 3));
                    let input = if request % 4 == 0 { format!("[{row},{row}]") } else { row };
                    connection.write(&post("/predict", JSON, format!("{{\"input\":{input}}}").as_bytes()));
                    let response = connection.receive();
                    assert_eq!((response.status, response.text()), (200, answer(&input)));
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        eventually("the load runs", || done.load(Ordering::SeqCst) > clients);
        during();
    });
    assert_eq!(done.load(Ordering::SeqCst), clients * requests);
}

#[test]
fn nothing_is_mixed_up_over_several_upstreams() {
    // One of them keeps its connections, which are then used again.
    let upstreams =
        [Server::start(echo), Server::start(echo), Server::start(|request| echo(request).keep_alive())];
    let addresses = upstreams.each_ref().map(Server::address);
    let gateway = TestGateway::start(&addresses, "max_batch = 8");
    verified_load(&gateway, 8, 200, || {});
    assert!(upstreams.iter().all(|upstream| upstream.count("/predict") > 0));
}

#[test]
fn an_upstream_restarted_under_load_costs_no_answer() {
    let mut upstream = Some(Server::start(echo));
    let address = upstream.as_ref().map(Server::address).unwrap();
    let gateway = TestGateway::start(&[address], "retry_posts = true");
    verified_load(&gateway, 4, 100, || {
        for _ in 0..3 {
            drop(upstream.take());
            upstream = Some(Server::start_at(address, echo));
        }
    });
}

#[test]
fn a_request_is_sent_again_only_if_that_is_safe() {
    for (options, method, status) in
        [("", "POST", 502), ("retry_posts = true", "POST", 200), ("", "GET", 200), ("", "PUT", 502)]
    {
        for path in ["/predict", "/other"] {
            let is_lost = AtomicBool::new(true);
            let upstream = raw_upstream(move |mut stream, _| {
                if !is_lost.swap(false, Ordering::SeqCst) {
                    prediction("[[1]]").send(&mut stream).unwrap();
                }
            });
            let gateway = TestGateway::start(&[upstream], options);
            let request = match method {
                "GET" => get(path, ""),
                _ => {
                    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: 0\r\n\r\n")
                        .into_bytes()
                }
            };
            let response = match (method, path) {
                ("POST", "/predict") => gateway.predict("{\"input\":[1]}"),
                _ => gateway.send(&request),
            };
            assert_eq!(response.status, status, "{options} {method} {path}: {}", response.text());
        }
    }
}
