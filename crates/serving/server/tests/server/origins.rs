//! Web pages of other origins, and names that are not the server's.

use cudock_testkit::client::TestClient;

use crate::http2;
use crate::support::{TestServer, count};

const PATHS: [&str; 3] = ["/", "/start", "/change"];

/// A server that others can reach, too, and its address on this machine.
fn network_server() -> (TestServer, std::net::SocketAddr) {
    let server = TestServer::start(|settings| {
        settings.listen = vec!["0.0.0.0:0".parse().unwrap()];
        settings.allow_hosts = vec!["app.example".to_owned()];
    });
    let address = ([127, 0, 0, 1], server.address.port()).into();
    (server, address)
}

/// The statuses of requests to all paths.
fn statuses(address: std::net::SocketAddr, headers: &str) -> [u16; 3] {
    PATHS.map(|path| {
        let mut client = TestClient::connect(address);
        client.write(format!("POST {path} HTTP/1.1\r\n{headers}content-length: 0\r\n\r\n").as_bytes());
        client.receive().status
    })
}

#[test]
fn a_loopback_address_is_served_under_its_own_and_allowed_names_only() {
    let server = TestServer::start(|settings| settings.allow_hosts = vec!["models.example".to_owned()]);
    let port = server.address.port();
    for host in ["localhost", "LOCALHOST.", "127.0.0.1", "[::1]", "models.example", "Models.Example"] {
        for host in [host.to_owned(), format!("{host}:{port}"), format!("{host}:1")] {
            assert_eq!(statuses(server.address, &format!("host: {host}\r\n")), [200; 3], "{host}");
        }
    }
    let handled = count(&server.counters.handled);
    for host in
        ["evil.test", "10.0.0.5:8000", "0.0.0.0", "models.example.evil.test", "localhost@evil.test", ""]
    {
        assert_eq!(statuses(server.address, &format!("host: {host}\r\n")), [403; 3], "{host}");
    }
    let response = server.send(b"GET / HTTP/1.1\r\nhost: evil.test:80\r\n\r\n");
    assert_eq!(
        response.text(),
        "host \"evil.test:80\" is not the name of a loopback address; to serve under another name, start the server \
         with `--allow-host evil.test`"
    );
    assert_eq!(count(&server.counters.handled), handled, "none of them reached the handler");
    let old = server.send(b"GET / HTTP/1.0\r\n\r\n");
    assert_eq!(old.status, 200, "health checks of load balancers name no host");
}

#[test]
fn a_host_that_differs_from_the_url_is_rejected() {
    let server = TestServer::start(|_| {});
    for (url, host, status) in [
        ("http://localhost/", "localhost", 200),
        ("http://localhost:80/", "LOCALHOST", 200),
        ("http://localhost/", "127.0.0.1", 400),
        ("http://localhost:8000/", "localhost:8001", 400),
        ("http://evil.test/", "localhost", 400),
        ("http://localhost/", "evil.test", 400),
        ("http://localhost@evil.test/", "localhost", 400),
        ("http://evil.test/", "evil.test", 403),
    ] {
        let response = server.send(format!("GET {url} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes());
        assert_eq!(response.status, status, "{url} {host}: {}", response.text());
    }
}

#[test]
fn the_authority_of_http2_is_a_host_and_must_not_contradict_one() {
    let server = TestServer::start(|_| {});
    // 200 and 400 have indices, 403 has not (RFC 7541, appendix A).
    let status = |fields: &[(&str, &str)]| match http2::get(&server, fields)[..] {
        [0x88, ..] => 200,
        [0x8c, ..] => 400,
        _ => 0,
    };
    let handled = || count(&server.counters.handled);
    assert_eq!(status(&[(":authority", "localhost:8000"), ("host", "LOCALHOST:8000")]), 200);
    assert_eq!((status(&[(":authority", "localhost:80")]), handled()), (200, 2));
    assert_eq!(status(&[(":authority", "localhost:8000"), ("host", "evil.test")]), 400);
    assert_eq!(status(&[(":authority", "evil.test"), ("host", "localhost:8000")]), 400);
    assert_eq!((status(&[(":authority", "evil.test")]), handled()), (0, 2));
    assert_eq!((status(&[("host", "evil.test")]), handled()), (0, 2));
}

#[test]
fn a_foreign_page_on_a_loopback_address_changes_and_starts_nothing() {
    let server = TestServer::start(|settings| settings.allow_hosts = vec!["app.example".to_owned()]);
    let host = format!("localhost:{}", server.address.port());
    for (headers, expected) in [
        ("", [200, 200, 200]),
        (&*format!("origin: http://{host}\r\nsec-fetch-site: same-origin\r\n"), [200, 200, 200]),
        ("origin: https://app.example\r\nsec-fetch-site: cross-site\r\n", [200, 200, 200]),
        ("origin: http://proxied.example\r\nsec-fetch-site: same-origin\r\n", [200, 200, 403]),
        ("origin: https://evil.test\r\nsec-fetch-site: cross-site\r\n", [200, 403, 403]),
        ("origin: https://evil.test\r\n", [200, 403, 403]),
        ("origin: http://localhost:1\r\nsec-fetch-site: same-site\r\n", [200, 403, 403]),
        ("sec-fetch-site: cross-site\r\n", [200, 403, 403]),
        ("origin: null\r\n", [200, 403, 403]),
    ] {
        let found = statuses(server.address, &format!("host: {host}\r\n{headers}"));
        assert_eq!(found, expected, "{headers:?}");
    }
    let refused = server.send(
        b"POST /change HTTP/1.1\r\nhost: localhost\r\norigin: https://evil.test:8\r\ncontent-length: 0\r\n\r\n",
    );
    assert_eq!(
        refused.text(),
        "a web page of another origin (https://evil.test:8) may not change or start anything here; if the page is \
         yours, start the server with `--allow-host evil.test`"
    );
}

#[test]
fn on_a_network_every_host_is_answered_and_foreign_pages_change_nothing() {
    let (_server, address) = network_server();
    for (headers, expected) in [
        // A probe of a kubelet, and proxies that keep Host and change it.
        ("host: 10.1.2.3:8000\r\n", [200, 200, 200]),
        ("host: models.example\r\n", [200, 200, 200]),
        (
            "host: models.example\r\norigin: https://models.example\r\nsec-fetch-site: same-origin\r\n",
            [200, 200, 200],
        ),
        ("host: backend:8000\r\norigin: https://models.example\r\n", [200, 200, 403]),
        (
            "host: backend:8000\r\norigin: https://models.example\r\nsec-fetch-site: same-origin\r\n",
            [200, 200, 403],
        ),
        (
            "host: backend:8000\r\norigin: https://app.example\r\nsec-fetch-site: cross-site\r\n",
            [200, 200, 200],
        ),
        ("host: models.example\r\norigin: https://evil.test\r\n", [200, 200, 403]),
        ("host: models.example\r\nsec-fetch-site: same-site\r\n", [200, 200, 403]),
        // After DNS rebinding, the page and the server have the same name.
        ("host: evil.test:8000\r\norigin: http://evil.test:8000\r\n", [200, 200, 403]),
        ("host: 10.1.2.3:8000\r\norigin: http://10.1.2.3:8000\r\n", [200, 200, 200]),
    ] {
        assert_eq!(statuses(address, headers), expected, "{headers:?}");
    }
}
