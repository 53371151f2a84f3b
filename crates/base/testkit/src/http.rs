//! An HTTP/1.1 server on 127.0.0.1 with a function that decides each reply, for tests of clients.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request as it came over the wire; header names are lower case.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// The path with its query, as sent.
    pub path: String,
    pub headers: BTreeMap<String, String>,
    /// The headers as sent, with all values of each.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The first byte that a Range header requests.
    pub fn first_byte(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// How a server treats a connection after a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Then {
    /// Announces that it closes the connection, and does.
    #[default]
    Close,
    /// Serves further requests.
    KeepAlive,
    /// Closes the connection although it did not announce that.
    HangUp,
    /// Leaves the connection open and sends no more.
    Stall,
}

/// A reply, and in what way it is bad.
#[must_use]
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub status: u16,
    /// Headers beyond those of the framing.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// If not empty, written instead of a status line, headers and a body, piece by piece.
    pub pieces: Vec<Vec<u8>>,
    /// How long the server waits before it replies.
    pub delay: Duration,
    /// Close the connection after this many bytes of the body.
    pub cut_after: Option<usize>,
    pub then: Then,
    /// Send the body in chunks, without its length.
    pub chunked: bool,
}

impl Reply {
    /// A reply that ends its connection.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), ..Self::default() }
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Serves further requests on the same connection.
    pub fn keep_alive(mut self) -> Self {
        self.then = Then::KeepAlive;
        self
    }

    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Closes the connection after this many bytes of the body.
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut_after = Some(bytes);
        self
    }

    /// Sends the body in chunks, without its length.
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// The blob, or the requested range of it.
    pub fn blob(request: &Request, bytes: &[u8]) -> Self {
        match request.first_byte() {
            Some(from) if from >= bytes.len() => Self::new(416, ""),
            Some(from) => Self::new(206, &bytes[from..])
                .with("Content-Range", format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len())),
            None => Self::new(200, bytes),
        }
    }

    /// Writes the reply to a socket of any kind.
    pub fn send(&self, stream: &mut impl Write) -> std::io::Result<()> {
        for piece in &self.pieces {
            stream.write_all(piece)?;
            stream.flush()?;
            // So that the client reads each piece by itself.
            thread::sleep(Duration::from_millis(1));
        }
        if !self.pieces.is_empty() {
            return Ok(());
        }
        let mut head = format!("HTTP/1.1 {} Test\r\n", self.status);
        if matches!(self.then, Then::Close | Then::Stall) {
            head.push_str("Connection: close\r\n");
        }
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        stream.write_all(head.as_bytes())?;
        if self.chunked {
            stream.write_all(b"Transfer-Encoding: chunked\r\n\r\n")?;
        } else {
            write!(stream, "Content-Length: {}\r\n\r\n", self.body.len())?;
        }
        let body = &self.body[..self.cut_after.unwrap_or(self.body.len()).min(self.body.len())];
        if self.chunked {
            for chunk in body.chunks(1000) {
                write!(stream, "{:x}\r\n", chunk.len())?;
                stream.write_all(chunk)?;
                stream.write_all(b"\r\n")?;
            }
            if self.cut_after.is_none() {
                stream.write_all(b"0\r\n\r\n")?;
            }
        } else {
            stream.write_all(body)?;
        }
        stream.flush()
    }
}

const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

/// A server on 127.0.0.1 that records its requests. It is gone when dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stopped: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    pub fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at(ANY_PORT, handler)
    }

    /// Starts a server at a given address, to come back where another one vanished.
    pub fn start_at(
        address: SocketAddr,
        handler: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let stopped = Arc::new(AtomicBool::new(false));
        let record = Arc::clone(&requests);
        let handle = move |request: &Request| {
            record.lock().unwrap().push(request.clone());
            handler(request)
        };
        let (address, thread) = listen(address, Arc::clone(&stopped), handle);
        Self { address, requests, stopped, thread: Some(thread) }
    }

    /// Starts a server that records nothing and runs until the process ends, and returns its address.
    pub fn run_forever(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> SocketAddr {
        listen(ANY_PORT, Arc::default(), handler).0
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// How many requests had a path with this text in it.
    pub fn count(&self, part_of_path: &str) -> usize {
        self.requests().iter().filter(|request| request.path.contains(part_of_path)).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then closes the socket.
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().unwrap().join();
    }
}

/// Accepts connections until the flag is set, each on its own thread.
fn listen(
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    handler: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (SocketAddr, thread::JoinHandle<()>) {
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap();
    let handler: Arc<Handler> = Arc::new(handler);
    let accept = move || {
        for stream in listener.incoming() {
            if stopped.load(Ordering::SeqCst) {
                return;
            }
            let handler = Arc::clone(&handler);
            thread::spawn(move || serve(stream.unwrap(), &*handler));
        }
    };
    (address, thread::spawn(accept))
}

fn serve(mut stream: TcpStream, handler: &Handler) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read_next(&mut reader) {
        let reply = handler(&request);
        thread::sleep(reply.delay);
        // A client that has seen enough hangs up.
        let sent = reply.send(&mut stream);
        if reply.then == Then::Stall {
            thread::sleep(Duration::from_secs(30));
        }
        if sent.is_err() || reply.then != Then::KeepAlive || reply.cut_after.is_some() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// Reads one request from a socket of any kind.
pub fn read_request(stream: impl Read) -> Option<Request> {
    read_next(&mut BufReader::new(stream))
}

/// Reads one request of a connection that may carry several.
fn read_next(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut headers, mut fields) = (BTreeMap::new(), Vec::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|encoding| encoding == "chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let length = usize::from_str_radix(line.trim(), 16).ok()?;
            let mut chunk = vec![0; length + 2];
            reader.read_exact(&mut chunk).ok()?;
            if length == 0 {
                break;
            }
            body.extend(&chunk[..length]);
        }
    } else {
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        body.resize(length, 0);
        reader.read_exact(&mut body).ok()?;
    }
    Some(Request { method, path, headers, fields, body })
}

/// A text that is in no file.
pub fn secret() -> String {
    format!("s{:016x}{:016x}", RandomState::new().hash_one(1), RandomState::new().hash_one(2))
}

/// Pseudorandom bytes, the same ones for every call.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            u8::try_from(state >> 56).unwrap()
        })
        .collect()
}
