//! Web pages of other origins.

use cudock_testkit::client::{TestResponse, get, post};
use cudock_testkit::http::Server;

use crate::support::{JSON, TestGateway, answer, echo, free_address};

/// What a browser adds to the requests of a page.
const FOREIGN: [&str; 4] = [
    "origin: https://evil.test\r\nsec-fetch-site: cross-site\r\n",
    "origin: http://localhost:1\r\nsec-fetch-site: same-site\r\n",
    "origin: https://evil.test\r\n",
    "origin: null\r\n",
];

fn send(gateway: &TestGateway, method: &str, path: &str, headers: &str) -> TestResponse {
    gateway.send(
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: 0\r\n\r\n")
            .as_bytes(),
    )
}

#[test]
fn a_foreign_page_reads_and_predicts_and_sends_nothing_else_to_an_upstream() {
    let upstream = Server::start(echo);
    let gateway = TestGateway::start(&[upstream.address()], "allow_hosts = ['app.example']");
    for foreign in FOREIGN {
        let before = upstream.requests().len();
        for method in ["POST", "PUT", "PATCH", "DELETE", "MERGE"] {
            for path in ["/", "/models", "/v2/repository/models/m/unload", "/predict/../models"] {
                let refused = send(&gateway, method, path, foreign);
                assert_eq!(refused.status, 403, "{method} {path} {foreign:?}");
                assert!(refused.text().contains("--allow-host"), "{}", refused.text());
            }
        }
        assert_eq!(send(&gateway, "PUT", "/predict", foreign).status, 403);
        let other = upstream.requests()[before..].iter().filter(|request| request.path != "/health").count();
        assert_eq!(other, 0, "{foreign:?}");
        let headers = format!("{JSON}{foreign}");
        assert_eq!(gateway.send(&post("/predict", &headers, b"{\"input\":[1]}")).text(), answer("[1]"));
        assert_eq!(gateway.send(&post("/v1/chat/completions", &headers, b"{}")).status, 200);
        assert_eq!(gateway.send(&get("/models", foreign)).status, 200);
        // A browser asks before it sends what needs permission; the upstream answers.
        assert_eq!(send(&gateway, "OPTIONS", "/models", foreign).status, 200);
    }
    for own in ["", "origin: https://app.example\r\nsec-fetch-site: cross-site\r\n"] {
        assert_eq!(send(&gateway, "DELETE", "/models", own).status, 200, "{own:?}");
    }
}

#[test]
fn a_foreign_page_wakes_no_upstream() {
    let directory = tempfile::tempdir().unwrap();
    let woken = directory.path().join("woken");
    let wake = format!("hold = '1s'\nwake = ['mkdir', '{}']", woken.display());
    let gateway = TestGateway::start(&[free_address()], &wake);
    for foreign in FOREIGN {
        let headers = format!("{JSON}{foreign}");
        assert_eq!(gateway.send(&post("/predict", &headers, b"{\"input\":[1]}")).status, 403);
        assert_eq!(gateway.send(&get("/", foreign)).status, 403);
        assert_eq!(gateway.send(&get("/health", foreign)).status, 503, "a probe wakes nothing");
        assert_eq!(gateway.send(&get("/_gateway/live", foreign)).status, 200);
    }
    gateway.until("wakes_total", 0);
    assert_eq!(gateway.predict("{\"input\":[1]}").status, 503);
    assert!(woken.exists(), "other clients wake it");
}

#[test]
fn a_rebound_name_reaches_no_upstream() {
    let upstream = Server::start(echo);
    let gateway = TestGateway::start(&[upstream.address()], "allow_hosts = ['models.example']");
    let status =
        |host: &str| gateway.send(format!("GET /page HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).status;
    assert_eq!((status("evil.test:8080"), upstream.count("/page")), (403, 0));
    assert_eq!((status("models.example"), status("127.0.0.1:8080")), (200, 200));
}

#[test]
fn a_compression_that_only_the_upstream_knows_is_passed_on() {
    let upstream = Server::start(|request| match request.path.as_str() {
        "/predict" => cudock_testkit::http::Reply::new(200, request.body.clone()),
        _ => echo(request),
    });
    let gateway = TestGateway::start(&[upstream.address()], "");
    let headers = format!("{JSON}content-encoding: br\r\n");
    let response = gateway.send(&post("/predict", &headers, b"brotli, to whom knows it"));
    assert_eq!((response.status, response.text().as_str()), (200, "brotli, to whom knows it"));
    let request = upstream.requests().into_iter().find(|request| request.path == "/predict").unwrap();
    assert_eq!(request.header("content-encoding"), Some("br"));
}
