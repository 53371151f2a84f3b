//! HTTP probes of a container: a GET of which only the status counts.
//!
//! `cudock-http`'s client connects in the calling thread, without a resolver thread or a pool, so that the thread can enter
//! the container's network first. The deadline covers connecting, TLS and the response. Certificates are not verified, as in
//! Kubernetes: they are issued for an external name, and the probe only checks that the container responds.

use std::path::Path;
use std::time::{Duration, Instant};

use cudock_base::text::percent;
use cudock_group::HttpGet;
use cudock_http::{Client, Request};
use cudock_netns::Namespace;

/// Probes from inside a network namespace, or from the host's. A status from 200 to 399 is a success.
///
/// Moves the calling thread into the namespace, so the thread must exist for this purpose.
pub(in crate::group) fn probe(get: &HttpGet, network: Option<&Path>, limit: Duration) -> Result<(), String> {
    let deadline = Instant::now() + limit;
    if let Some(path) = network {
        Namespace::open(path).and_then(|namespace| namespace.enter()).map_err(|error| error.to_string())?;
    }
    let left = deadline.saturating_duration_since(Instant::now());
    let response = Client::for_probes().send(&request(get).deadline(left));
    match response.map_err(|error| error.reason)?.status() {
        200..400 => Ok(()),
        status => Err(format!("status {status}")),
    }
}

fn request(get: &HttpGet) -> Request {
    let scheme = if get.https { "https" } else { "http" };
    let path = percent::repair(get.path.trim_start_matches('/'));
    let mut request = Request::get(format!("{scheme}://localhost:{}/{path}", get.port))
        .without_redirects()
        .header("Connection", "close");
    if !get.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
        request = request.header("User-Agent", concat!("cudock-probe/", env!("CARGO_PKG_VERSION")));
    }
    get.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};
    use std::thread;

    use super::*;

    fn get(port: u16) -> HttpGet {
        HttpGet { path: "/health?x=1".to_owned(), port, https: false, headers: Vec::new() }
    }

    /// Probes a server that sends one response. Returns the result and the head of the request in lower case.
    fn probed(get: HttpGet, response: &'static str, limit: Duration) -> (Result<(), String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut text = String::new();
            let mut buffer = [0; 4096];
            while !text.ends_with("\r\n\r\n") {
                let count = stream.read(&mut buffer).unwrap();
                text.push_str(std::str::from_utf8(buffer.get(..count).unwrap()).unwrap());
            }
            stream.write_all(response.as_bytes()).unwrap();
            if response.is_empty() {
                // Stays connected without sending anything until the client is gone.
                let _ = stream.read(&mut buffer);
            }
            text.to_ascii_lowercase()
        });
        let outcome = probe(&HttpGet { port, ..get }, None, limit);
        (outcome, server.join().unwrap())
    }

    #[test]
    fn a_status_from_200_to_399_is_a_success() {
        let limit = Duration::from_secs(20);
        let (outcome, head) = probed(get(0), "HTTP/1.1 204 No Content\r\n\r\n", limit);
        assert_eq!(outcome, Ok(()));
        assert!(head.starts_with("get /health?x=1 http/1.1\r\n"), "{head}");
        assert!(
            head.contains("\r\nhost: localhost:") && head.contains("\r\nuser-agent: cudock-probe/"),
            "{head}"
        );
        assert_eq!(probed(get(0), "HTTP/1.0 302 Found\r\nLocation: /x\r\n\r\n", limit).0, Ok(()));
        assert_eq!(probed(get(0), "HTTP/1.1 503 Busy\r\n\r\n", limit).0, Err("status 503".to_owned()));
    }

    #[test]
    fn responses_that_are_not_http_and_timeouts_are_failures() {
        assert_eq!(
            probed(get(0), "SSH-2.0-x\r\n", Duration::from_secs(20)).0,
            Err("the response is not valid HTTP".to_owned())
        );
        assert_eq!(
            probed(get(0), "", Duration::from_millis(50)).0,
            Err("timed out waiting for a response".to_owned())
        );
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert!(probe(&get(closed), None, Duration::from_secs(5)).is_err());
    }

    #[test]
    fn headers_of_the_file_replace_the_usual_ones() {
        let headers = vec![
            ("host".to_owned(), "example".to_owned()),
            ("User-agent".to_owned(), "mine".to_owned()),
            ("X-Key".to_owned(), "1".to_owned()),
        ];
        let get = HttpGet { path: "a b".to_owned(), headers, ..get(0) };
        let response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let (outcome, head) = probed(get, response, Duration::from_secs(20));
        assert_eq!(outcome, Ok(()));
        assert!(head.starts_with("get /a%20b http/1.1\r\n"), "{head}");
        for line in ["host: example", "user-agent: mine", "x-key: 1", "connection: close"] {
            assert_eq!(head.matches(&format!("\r\n{line}\r\n")).count(), 1, "{line}: {head}");
        }
        assert!(!head.contains("localhost") && !head.contains("cudock-probe"), "{head}");
    }

    #[test]
    fn certificates_are_not_verified() {
        let directory = tempfile::tempdir().unwrap();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=elsewhere.example"])
            .args(["-keyout", "key.pem", "-out", "cert.pem"])
            .current_dir(directory.path())
            .stderr(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            cudock_testkit::missing("openssl", "openssl is needed to make a certificate");
            return;
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Command::new("openssl")
            .args(["s_server", "-quiet", "-www", "-key", "key.pem", "-cert", "cert.pem"])
            .args(["-accept", &format!("127.0.0.1:{port}")])
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(server.try_wait().unwrap().is_none(), "the server ended");
            thread::sleep(Duration::from_millis(20));
        }
        let get = |https| HttpGet { path: "/".to_owned(), port, https, headers: Vec::new() };
        // As in a group: on a thread with a small stack.
        let probe = |get: HttpGet| {
            let thread = thread::Builder::new().stack_size(crate::group::probe::runner::STACK_SIZE);
            thread.spawn(move || probe(&get, None, Duration::from_secs(60))).unwrap().join().unwrap()
        };
        let (safely, plainly) = (probe(get(true)), probe(get(false)));
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(safely, Ok(()));
        assert!(plainly.is_err(), "what speaks TLS does not speak HTTP");
    }
}
