//! A probe's request: one GET, of whose answer only the status counts.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use cudock_group::HttpGet;
use cudock_netns::Namespace;

use super::tls;

/// The line with the status is not longer than this.
const LONGEST_LINE: usize = 1024;

/// Asks from inside a network, by its path, or from this machine's own. Good is a status from 200 to 399.
///
/// It moves the calling thread into that network, so the thread must be made for it.
pub(super) fn ask(request: &HttpGet, network: Option<&Path>, limit: Duration) -> Result<(), String> {
    let until = Instant::now() + limit;
    if let Some(path) = network {
        Namespace::open(path).and_then(|namespace| namespace.enter()).map_err(|error| error.to_string())?;
    }
    let status = status(request, until).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "no answer in time".to_owned(),
        _ => error.to_string(),
    })?;
    if (200..400).contains(&status) { Ok(()) } else { Err(format!("status {status}")) }
}

fn status(request: &HttpGet, until: Instant) -> io::Result<u16> {
    let stream = Timed { stream: connect(request.port, until)?, until };
    if request.https { exchange(request, tls::over(stream)?) } else { exchange(request, stream) }
}

/// IPv4 first: most programs listen there, and those that listen on all addresses hear both.
fn connect(port: u16, until: Instant) -> io::Result<TcpStream> {
    let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let mut first = None;
    for address in addresses {
        match TcpStream::connect_timeout(&SocketAddr::new(address, port), left(until)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

fn exchange(request: &HttpGet, mut stream: impl Read + Write) -> io::Result<u16> {
    stream.write_all(head(request).as_bytes())?;
    stream.flush()?;
    let mut line = Vec::new();
    let mut byte = [0_u8; 1];
    while line.len() < LONGEST_LINE && stream.read(&mut byte)? > 0 {
        if byte == *b"\n" {
            break;
        }
        line.extend(byte);
    }
    read_status(&line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP"))
}

fn head(request: &HttpGet) -> String {
    let host = format!("localhost:{}", request.port);
    let usual = [
        ("Host", host.as_str()),
        ("User-Agent", concat!("cudock-probe/", env!("CARGO_PKG_VERSION"))),
        ("Accept", "*/*"),
        ("Connection", "close"),
    ];
    let given = |name: &str| request.headers.iter().any(|(ours, _)| ours.eq_ignore_ascii_case(name));
    let given_ones = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let lines: String = usual
        .into_iter()
        .filter(|(name, _)| !given(name))
        .chain(given_ones)
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!("GET {} HTTP/1.1\r\n{lines}\r\n", request.path)
}

/// `HTTP/1.1 204 No Content`.
fn read_status(line: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(line.get(..12)?).ok()?;
    let (version, status) = text.split_once(' ')?;
    let known = version.strip_prefix("HTTP/1.").is_some_and(|minor| minor.len() == 1);
    status.parse().ok().filter(|status| known && (100..600).contains(status))
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A connection that ends at a moment, however slowly the other side goes on.
#[derive(Debug)]
pub(super) struct Timed {
    stream: TcpStream,
    until: Instant,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.stream.set_read_timeout(Some(left(self.until)?))?;
            match self.stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left(self.until)?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn get(port: u16) -> HttpGet {
        HttpGet { path: "/health?x=1".to_owned(), port, https: false, headers: Vec::new() }
    }

    /// A server that says one thing to one client; what it was asked.
    fn asked(answer: &'static str, limit: Duration) -> (Result<(), String>, String) {
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
            stream.write_all(answer.as_bytes()).unwrap();
            if answer.is_empty() {
                // Stays connected without a word until the client is gone.
                let _ = stream.read(&mut buffer);
            }
            text
        });
        let outcome = ask(&get(port), None, limit);
        (outcome, server.join().unwrap())
    }

    #[test]
    fn a_status_from_200_to_399_is_good() {
        let limit = Duration::from_secs(20);
        let (outcome, text) = asked("HTTP/1.1 204 No Content\r\n\r\n", limit);
        assert_eq!(outcome, Ok(()));
        assert!(text.starts_with("GET /health?x=1 HTTP/1.1\r\nHost: localhost:"), "{text}");
        assert_eq!(asked("HTTP/1.0 302 Found\r\nLocation: /x\r\n\r\n", limit).0, Ok(()));
        assert_eq!(asked("HTTP/1.1 503 Busy\r\n\r\n", limit).0, Err("status 503".to_owned()));
    }

    #[test]
    fn what_is_not_http_and_what_does_not_answer_is_not_good() {
        assert_eq!(
            asked("SSH-2.0-x\r\n", Duration::from_secs(20)).0,
            Err("the answer is not HTTP".to_owned())
        );
        assert_eq!(asked("", Duration::from_millis(50)).0, Err("no answer in time".to_owned()));
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert!(ask(&get(closed), None, Duration::from_secs(5)).is_err());
    }

    #[test]
    fn headers_of_the_file_stand_in_the_place_of_the_usual_ones() {
        let headers = vec![("host".to_owned(), "example".to_owned()), ("X-Key".to_owned(), "1".to_owned())];
        let head = head(&HttpGet { headers, ..get(80) });
        assert!(head.contains("host: example\r\n") && !head.contains("Host: localhost"), "{head}");
        assert!(head.ends_with("X-Key: 1\r\n\r\n"), "{head}");
    }

    #[test]
    fn a_line_that_is_no_status_is_none() {
        for line in
            ["", "HTTP/1.1", "HTTP/2 200 OK", "HTTP/1.1 20", "HTTP/1.1 abc", "HTTP/1.1 999", "xx 200 yyyyy"]
        {
            assert_eq!(read_status(line.as_bytes()), None, "{line}");
        }
        assert_eq!(read_status(b"HTTP/1.1 200 OK\r"), Some(200));
    }
}
