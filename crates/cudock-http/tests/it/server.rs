//! A server on 127.0.0.1 with a function that decides each reply. Other crates' tests include this file, too.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request as it came over the wire; header names are lower case.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The first byte that a Range header requests.
    pub(crate) fn first_byte(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// A reply, and in what way it is bad.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Close the connection after this many bytes of the body.
    pub(crate) cut_after: Option<usize>,
    /// Stop sending after `cut_after`, and keep the connection open.
    pub(crate) then_stall: bool,
    /// Send the body in chunks, without its length.
    pub(crate) chunked: bool,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), ..Self::default() }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn cut_after(mut self, bytes: usize) -> Self {
        self.cut_after = Some(bytes);
        self
    }

    pub(crate) fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// The blob, or the requested range of it.
    pub(crate) fn blob(request: &Request, bytes: &[u8]) -> Self {
        match request.first_byte() {
            Some(from) if from >= bytes.len() => Self::new(416, ""),
            Some(from) => Self::new(206, &bytes[from..])
                .with("Content-Range", format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len())),
            None => Self::new(200, bytes),
        }
    }

    pub(crate) fn send(&self, stream: &mut impl Write) -> std::io::Result<()> {
        let mut head = format!("HTTP/1.1 {} Test\r\nConnection: close\r\n", self.status);
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

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

/// A server on 127.0.0.1 that records its requests. It is gone when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stopped: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), handler)
    }

    /// At a given address, to come back where another one vanished.
    pub(crate) fn start_at(
        address: SocketAddr,
        handler: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, stopped) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let handler: Arc<Handler> = Arc::new(handler);
        let thread = thread::spawn({
            let (requests, stopped) = (Arc::clone(&requests), Arc::clone(&stopped));
            move || {
                for stream in listener.incoming() {
                    if stopped.load(Ordering::SeqCst) {
                        return;
                    }
                    let (requests, handler) = (Arc::clone(&requests), Arc::clone(&handler));
                    thread::spawn(move || serve(stream.unwrap(), &requests, &*handler));
                }
            }
        });
        Self { address, requests, stopped, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Host and port.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, part_of_path: &str) -> usize {
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

fn serve(mut stream: TcpStream, requests: &Mutex<Vec<Request>>, handler: &Handler) {
    let Some(request) = read_request(&stream) else { return };
    requests.lock().unwrap().push(request.clone());
    let reply = handler(&request);
    // A client that has seen enough hangs up.
    let _ = reply.send(&mut stream);
    if reply.then_stall {
        thread::sleep(Duration::from_secs(30));
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// Reads one request from a socket of any kind.
pub(crate) fn read_request(stream: impl Read) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
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
    Some(Request { method, path, headers, body })
}

/// A text that no file of ours holds.
pub(crate) fn secret() -> String {
    format!("s{:016x}{:016x}", RandomState::new().hash_one(1), RandomState::new().hash_one(2))
}

/// Bytes that differ from place to place.
pub(crate) fn noise(length: usize) -> Vec<u8> {
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
