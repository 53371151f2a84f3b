//! Requests share batches, and each gets its own rows.

use cudock_testkit::client::{TestClient, eventually, post};
use cudock_testkit::http::{Reply, Request, Server};

use crate::support::{JSON, TestGateway, answer, echo, gated};

/// Occupies the server, so that the requests after this one are queued.
fn occupy(upstream: &Server, gateway: &TestGateway) -> TestClient {
    let first = gateway.ask("{\"input\":[0]}");
    eventually("the first request is with the server", || upstream.count("/predict") == 1);
    first
}

fn predictions(upstream: &Server) -> Vec<String> {
    let requests = upstream.requests();
    requests.iter().filter(|request| request.path.starts_with("/predict")).map(Request::text).collect()
}

#[test]
fn queued_requests_are_sent_as_one_list_and_come_back_byte_for_byte() {
    let (upstream, gateway, gate) = gated("", echo);
    let mut first = occupy(&upstream, &gateway);
    let rows = ["[1.10,-2e+05,NaN]", "[ 3 ,\t4.0,null]", "[-0.0,1e999,12345678901234567890.5]"];
    let mut clients = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        clients.push(gateway.ask(&format!("{{\"input\":{row}}}")));
        gateway.until("upstream_queue_rows", u32::try_from(index + 1).unwrap());
    }
    gate.open(2);
    assert_eq!(first.receive().text(), answer("[0]"));
    for (client, row) in clients.iter_mut().zip(rows) {
        let response = client.receive();
        assert_eq!((response.status, response.text()), (200, answer(row)));
        assert_eq!(response.header("content-type"), Some("application/json"));
    }
    let joined = format!("{{\"input\":[{}]}}", rows.join(","));
    assert_eq!(predictions(&upstream), ["{\"input\":[[0]]}", &joined]);
    gateway.until("batch_rows_count", 2);
    gateway.until("upstream_rows_total", 4);
}

#[test]
fn a_list_of_rows_stays_together_and_gets_a_list_back() {
    let (upstream, gateway, gate) = gated("", echo);
    let mut first = occupy(&upstream, &gateway);
    let inputs = ["[7]", "[[1],[2],[3]]", "[8]", "[[4]]"];
    let mut clients = Vec::new();
    for (input, queued) in inputs.iter().zip([1, 4, 5, 6]) {
        clients.push(gateway.ask(&format!("{{\"input\":{input}}}")));
        gateway.until("upstream_queue_rows", queued);
    }
    gate.open(2);
    first.receive();
    for (client, input) in clients.iter_mut().zip(inputs) {
        assert_eq!(client.receive().text(), answer(input));
    }
    assert_eq!(predictions(&upstream)[1], "{\"input\":[[7],[1],[2],[3],[8],[4]]}");
}

#[test]
fn a_batch_is_never_larger_than_the_limit() {
    let (upstream, gateway, gate) = gated("max_batch = 3", echo);
    let mut first = occupy(&upstream, &gateway);
    let mut clients: Vec<_> = (1..=7).map(|row| gateway.ask(&format!("{{\"input\":[{row}]}}"))).collect();
    gateway.until("upstream_queue_rows", 7);
    gate.open(100);
    first.receive();
    for (row, client) in (1..=7).zip(&mut clients) {
        assert_eq!(client.receive().text(), answer(&format!("[{row}]")));
    }
    let sizes = predictions(&upstream).iter().map(|text| text.matches("],[").count() + 1).collect::<Vec<_>>();
    assert!(sizes.iter().all(|size| *size <= 3), "{sizes:?}");
    assert!(sizes.contains(&3), "{sizes:?}");
}

#[test]
fn requests_share_a_batch_only_if_everything_but_the_rows_is_equal() {
    let (upstream, gateway, gate) = gated("", echo);
    let mut first = occupy(&upstream, &gateway);
    let mut clients = Vec::new();
    for (path, headers, body) in [
        ("/predict", "", "{\"input\":[1]}"),
        ("/predict", "x-request-id: 7\r\n", "{\"input\":[1]}"),
        ("/predict?a=1", "", "{\"input\":[1]}"),
        ("/predict", "authorization: Bearer other\r\n", "{\"input\":[1]}"),
        ("/predict", "x-tenant: other\r\n", "{\"input\":[1]}"),
        ("/predict", "", "{\"input\":[1],\"top\":3}"),
        ("/predict", "", "{\"input\":[1,2]}"),
        ("/predict", "", "{\"input\":[\"1\"]}"),
    ] {
        let mut client = gateway.connect();
        client.write(&post(path, &format!("{JSON}{headers}"), body.as_bytes()));
        clients.push(client);
    }
    gateway.until("upstream_queue_rows", 8);
    gate.open(100);
    first.receive();
    for client in &mut clients {
        assert_eq!(client.receive().status, 200);
    }
    assert_eq!(predictions(&upstream).len(), 1 + 7);
    assert_eq!(predictions(&upstream).iter().filter(|text| *text == "{\"input\":[[1],[1]]}").count(), 1);
}

#[test]
fn a_rejected_row_fails_alone() {
    for status in [400, 500] {
        check_rejected_row(status);
    }
}

/// One of seven rows is rejected with that status.
fn check_rejected_row(status: u16) {
    let reply = move |request: &Request| {
        if request.text().contains("666") {
            return Reply::new(status, "bad row").with("x-why", "row");
        }
        echo(request)
    };
    let (upstream, gateway, gate) = gated("", reply);
    let mut first = occupy(&upstream, &gateway);
    let rows = ["[666]", "[1]", "[2]", "[4]", "[5]", "[6]", "[7]"];
    let mut clients: Vec<_> = rows.iter().map(|row| gateway.ask(&format!("{{\"input\":{row}}}"))).collect();
    gateway.until("upstream_queue_rows", 7);
    gate.open(100);
    first.receive();
    for (client, row) in clients.iter_mut().zip(rows) {
        let response = client.receive();
        if row == "[666]" {
            assert_eq!((response.status, response.text().as_str()), (status, "bad row"));
            assert_eq!(response.header("x-why"), Some("row"));
        } else {
            assert_eq!((response.status, response.text()), (200, answer(row)));
        }
    }
    assert!(predictions(&upstream).iter().filter(|text| text.contains("666")).count() <= 4, "it was halved");
    gateway.until("upstream_failures_total", u32::from(status >= 500));
}

#[test]
fn an_error_with_status_200_is_about_the_row_that_causes_it() {
    let (upstream, gateway, gate) = gated("", |request| {
        if request.text().contains("666") {
            return Reply::new(200, "{\"error\": \"bad row\"}");
        }
        echo(request)
    });
    let mut first = occupy(&upstream, &gateway);
    let rows = ["[1]", "[2]", "[3]", "[666]", "[4]", "[5]", "[6]"];
    let ask = |row: &&str| gateway.ask(&format!("{{\"input\":{row}}}"));
    let mut clients: Vec<_> = rows.iter().map(ask).collect();
    gateway.until("upstream_queue_rows", 7);
    gate.open(100);
    first.receive();
    for (client, row) in clients.iter_mut().zip(rows) {
        let expected = if row == "[666]" { "{\"error\": \"bad row\"}".to_owned() } else { answer(row) };
        assert_eq!(client.receive().text(), expected);
    }
    // Sent by itself as its client has written it, at last; batches go on.
    assert_eq!(predictions(&upstream).iter().filter(|text| **text == "{\"input\":[666]}").count(), 1);
    gateway.until("single_requests_total", 1);
    assert_eq!(gateway.predict("{\"input\":[7]}").text(), answer("[7]"));
    gateway.until("single_requests_total", 1);
}

#[test]
fn an_option_of_one_client_does_not_end_the_batches_of_others() {
    let (upstream, gateway, gate) = gated("", |request| {
        let rows = request.text().matches(']').count().saturating_sub(1);
        let all = if request.text().contains("top") { ",\"all\":[1,2]" } else { "" };
        Reply::new(200, format!("{{\"prediction\":[{}]{all}}}", vec!["7"; rows].join(",")))
    });
    gate.open(2);
    let unusual = gateway.predict("{\"input\":[[1]],\"top\":3}");
    assert_eq!(unusual.text(), "{\"prediction\":[7],\"all\":[1,2]}");
    gateway.until("single_requests_total", 1);
    let mut clients = vec![gateway.ask("{\"input\":[[0]]}")];
    eventually("the first request is with the server", || upstream.count("/predict") == 3);
    clients.extend((1..=3).map(|row| gateway.ask(&format!("{{\"input\":[[{row}]]}}"))));
    gateway.until("upstream_queue_rows", 3);
    gate.open(100);
    for client in &mut clients {
        assert_eq!(client.receive().text(), "{\"prediction\":[7]}");
    }
    assert_eq!(upstream.count("/predict"), 4);
    gateway.until("single_requests_total", 1);
}

#[test]
fn an_upstream_without_capacity_is_not_retried_row_by_row() {
    let (upstream, gateway, gate) = gated("", |request| match request.path.as_str() {
        "/predict" => Reply::new(503, "busy").with("retry-after", "7"),
        _ => Reply::new(200, ""),
    });
    let mut clients = vec![occupy(&upstream, &gateway)];
    clients.extend((1..=4).map(|row| gateway.ask(&format!("{{\"input\":[{row}]}}"))));
    gateway.until("upstream_queue_rows", 4);
    gate.open(100);
    for client in &mut clients {
        let response = client.receive();
        assert_eq!(
            (response.status, response.header("retry-after"), response.text().as_str()),
            (503, Some("7"), "busy")
        );
    }
    assert_eq!(upstream.count("/predict"), 2);
}

#[test]
fn a_request_that_cannot_share_a_batch_is_forwarded_as_it_is() {
    let upstream = Server::start(|request| match request.path.as_str() {
        "/predict" => Reply::new(422, format!("got {}", request.text())),
        _ => Reply::new(200, ""),
    });
    let gateway = TestGateway::start(&[upstream.address()], "");
    for body in [
        "",
        "[1,2]",
        "{\"input\": [1,}",
        "{\"inputs\": [1]}",
        "{\"input\": \"text\"}",
        "{\"input\": [[[1]]]}",
        "{\"input\": [[1],[1,2]]}",
        "{\"input\": [1], \"input\": [2]}",
        "{\"\\u0069nput\": [1], \"input\": [2]}",
        &format!("{{\"input\": {}}}", "[".repeat(100_000)),
    ] {
        let response = gateway.predict(body);
        assert_eq!((response.status, response.text()), (422, format!("got {body}")), "{body:.80}");
    }
    let form = gateway.send(&post("/predict", "content-type: text/plain\r\n", b"{\"input\":[1]}"));
    assert_eq!(form.text(), "got {\"input\":[1]}");
}

#[test]
fn rows_keys_and_paths_are_set_by_options() {
    let upstream = Server::start(|request| {
        let rows = request.text().matches("\"a").count();
        let list = |value: &str| format!("[{}]", vec![value; rows].join(","));
        Reply::new(
            200,
            format!("{{\"labels\": {}, \"n\": {rows}, \"scores\": {}}}", list("\"l\""), list("0.50")),
        )
    });
    let options =
        "path = '/v1/score'\ninput_key = 'instances'\noutput_keys = ['scores', 'labels']\nrow_rank = 0";
    let gateway = TestGateway::start(&[upstream.address()], options);
    for (input, expected) in [
        ("\"a1\"", "{\"labels\": \"l\", \"n\": 1, \"scores\": 0.50}"),
        ("[\"a1\", \"a2\"]", "{\"labels\": [\"l\",\"l\"], \"n\": 2, \"scores\": [0.50,0.50]}"),
    ] {
        let body = format!("{{\"instances\": {input}}}");
        assert_eq!(gateway.send(&post("/v1/score", JSON, body.as_bytes())).text(), expected);
    }
}
