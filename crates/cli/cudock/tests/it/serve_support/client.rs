//! A client of HTTP/1.1 that sends exactly the given bytes, so that tests can misbehave.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A server without a response for this long has lost the request.
const PATIENCE: Duration = Duration::from_secs(120);

/// A response.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.into_iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }

    /// The reply, whose status must be 200.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.status, 200, "{}", self.text());
        self
    }
}

/// A value of a header.
pub struct HeaderValue(String);

impl From<&str> for HeaderValue {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<&String> for HeaderValue {
    fn from(text: &String) -> Self {
        Self(text.clone())
    }
}

impl From<String> for HeaderValue {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<usize> for HeaderValue {
    fn from(number: usize) -> Self {
        Self(number.to_string())
    }
}

/// One request.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    pub fn get(path: &str) -> Self {
        Self { method: "GET", path: path.to_owned(), ..Self::default() }
    }

    pub fn head(path: &str) -> Self {
        Self { method: "HEAD", path: path.to_owned(), ..Self::default() }
    }

    pub fn post(path: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { method: "POST", path: path.to_owned(), headers: Vec::new(), body: body.into() }
    }

    /// `POST /predict` with that input, as JSON.
    pub fn predict(input: &str) -> Self {
        Self::post("/predict", format!("{{\"input\": {input}}}"))
    }

    pub fn with(mut self, name: &str, value: impl Into<HeaderValue>) -> Self {
        self.headers.push((name.to_owned(), value.into().0));
        self
    }

    /// The body as gzip.
    pub fn gzipped(mut self) -> Self {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&self.body).unwrap();
        self.body = encoder.finish().unwrap();
        self.with("content-encoding", "gzip")
    }

    /// The request as it goes over the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let length = (self.method == "POST").then(|| format!("content-length: {}\r\n", self.body.len()));
        let headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "{} {} HTTP/1.1\r\nhost: localhost\r\n{}{headers}\r\n",
            self.method,
            self.path,
            length.unwrap_or_default()
        );
        [head.as_bytes(), &self.body].concat()
    }
}

/// A connection that is kept until it is dropped.
pub struct Connection {
    pub stream: TcpStream,
    unread: Vec<u8>,
    bodiless: bool,
}

impl Connection {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, unread: Vec::new(), bodiless: false })
    }

    pub fn send(&mut self, ask: &Ask) -> io::Result<()> {
        self.bodiless = ask.method == "HEAD";
        self.stream.write_all(&ask.bytes())
    }

    /// Sends a request and waits for the reply.
    #[track_caller]
    pub fn ask(&mut self, ask: &Ask) -> Reply {
        self.send(ask).unwrap_or_else(|error| panic!("{} {}: {error}", ask.method, ask.path));
        self.receive().unwrap_or_else(|error| panic!("{} {}: {error}", ask.method, ask.path))
    }

    /// The next reply; an error if the server ends the connection instead.
    pub fn receive(&mut self) -> io::Result<Reply> {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            self.read_some()?;
        };
        let head = String::from_utf8_lossy(&self.unread[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, head.clone()))?;
        let mut reply = Reply { status, head, body: Vec::new() };
        let length = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        let length: usize = if self.bodiless { 0 } else { length };
        self.unread.drain(..end + 4);
        while self.unread.len() < length {
            self.read_some()?;
        }
        reply.body = self.unread.drain(..length).collect();
        Ok(reply)
    }

    fn read_some(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        // A socket with a timeout reports signals that others restart after.
        let count = loop {
            match self.stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.unread.extend_from_slice(&buffer[..count]);
        Ok(())
    }

    /// Whether the server has ended the connection; does not wait.
    pub fn is_closed(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let closed = match self.stream.peek(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        self.stream.set_nonblocking(false).unwrap();
        closed
    }
}
