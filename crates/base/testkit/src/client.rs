//! An HTTP/1.1 client that sends exactly the given bytes, for tests of servers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time of silence after which a server has lost the request.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A request with a body.
pub fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A request without a body.
pub fn get(path: &str, headers: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n").into_bytes()
}

/// Waits until a condition holds, on however slow a machine.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + 3 * PATIENCE;
    while !holds() {
        assert!(Instant::now() < limit, "not in time: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Creates a certificate for localhost and its key with the program `openssl`; returns their paths.
pub fn certificate(directory: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (certificate, key) = (directory.join(format!("{name}.pem")), directory.join(format!("{name}.key")));
    let status = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split(' '))
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    (certificate, key)
}

/// A connection that sends exactly the given bytes.
#[derive(Debug)]
pub struct TestClient {
    pub stream: TcpStream,
    unread: Vec<u8>,
}

/// A response over HTTP/1.1.
#[derive(Debug)]
pub struct TestResponse {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl TestResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl TestClient {
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, unread: Vec::new() }
    }

    #[track_caller]
    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads more; false at the end of the connection, however it ended.
    fn fill(&mut self) -> bool {
        let mut chunk = [0; 16 << 10];
        match self.stream.read(&mut chunk) {
            Ok(read) => {
                self.unread.extend_from_slice(&chunk[..read]);
                read > 0
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Everything up to the next of these bytes, and them.
    #[track_caller]
    pub fn read_until(&mut self, marker: &[u8]) -> Vec<u8> {
        loop {
            if let Some(start) = self.unread.windows(marker.len()).position(|bytes| bytes == marker) {
                return self.unread.drain(..start + marker.len()).collect();
            }
            assert!(self.fill(), "closed before {marker:?}: {:?}", String::from_utf8_lossy(&self.unread));
        }
    }

    /// Exactly the next N bytes.
    #[track_caller]
    pub fn take(&mut self, length: usize) -> Vec<u8> {
        while self.unread.len() < length {
            assert!(self.fill(), "closed inside a response");
        }
        self.unread.drain(..length).collect()
    }

    /// The next response with a known length or in chunks; interim ones are skipped.
    #[track_caller]
    pub fn receive(&mut self) -> TestResponse {
        loop {
            let head = String::from_utf8(self.read_until(b"\r\n\r\n")).unwrap();
            let status = head[9..12].parse().unwrap();
            if status == 100 {
                continue;
            }
            let mut response = TestResponse { status, head, body: Vec::new() };
            if response.header("transfer-encoding") == Some("chunked") {
                while let chunk @ [_, ..] = &*self.chunk() {
                    response.body.extend_from_slice(chunk);
                }
            } else {
                let length = response.header("content-length").map_or(0, |length| length.parse().unwrap());
                response.body = self.take(length);
            }
            return response;
        }
    }

    /// The next chunk of a body; empty at its end.
    #[track_caller]
    pub fn chunk(&mut self) -> Vec<u8> {
        let line = String::from_utf8(self.read_until(b"\r\n")).unwrap();
        let mut chunk = self.take(usize::from_str_radix(line.trim(), 16).unwrap() + 2);
        chunk.truncate(chunk.len() - 2);
        chunk
    }

    /// Everything that arrives until the server closes the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.fill() {}
        std::mem::take(&mut self.unread)
    }
}
