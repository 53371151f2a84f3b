//! Test servers with various behaviors, and runs against them.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test file uses what it needs")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cudock_load::{Load, LoadReport, LoadRequest, LoadSettings, ServerUrl};

/// What a server does with a request.
pub struct Reply {
    /// How long it thinks.
    pub delay: Duration,
    /// What it writes, piece by piece.
    pub pieces: Vec<Vec<u8>>,
    /// Whether it closes the connection then.
    pub close: bool,
}

impl Reply {
    pub fn new(status: u16, body: &str) -> Self {
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        Self { delay: Duration::ZERO, pieces: vec![text.into_bytes()], close: false }
    }

    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// Starts a server with a thread a connection; `response` gets the index of the request, from zero.
pub fn server(response: impl Fn(u64) -> Reply + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let response = Arc::new(response);
    let count = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (response, count) = (Arc::clone(&response), Arc::clone(&count));
            std::thread::spawn(move || converse(stream.unwrap(), &*response, &count));
        }
    });
    address
}

fn converse(mut stream: TcpStream, response: &dyn Fn(u64) -> Reply, count: &AtomicU64) {
    stream.set_nodelay(true).unwrap();
    while read_request(&mut stream).is_some() {
        let reply = response(count.fetch_add(1, Ordering::SeqCst));
        std::thread::sleep(reply.delay);
        for piece in &reply.pieces {
            if stream.write_all(piece).is_err() {
                return;
            }
            if reply.pieces.len() > 1 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        if reply.close {
            return;
        }
    }
}

/// Reads one request; none if the connection ends.
fn read_request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
        let length: usize = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        if bytes.len() >= head + 4 + length {
            return Some(bytes);
        }
    }
}

pub fn target(address: SocketAddr) -> ServerUrl {
    format!("http://{address}").parse().unwrap()
}

/// One small request.
pub fn request(address: SocketAddr) -> LoadRequest {
    LoadRequest::post(&target(address), "/predict", &[], b"{\"input\": [1]}", 1)
}

pub fn settings(address: SocketAddr, load: Load) -> LoadSettings {
    LoadSettings {
        address,
        load,
        warm_up: Duration::from_millis(100),
        duration: Duration::from_millis(800),
        grace: Duration::from_secs(20),
        threads: 1,
        connections: 64,
        check_every: 0,
        seed: 1,
    }
}

pub fn run(settings: &LoadSettings, requests: &[LoadRequest]) -> LoadReport {
    let report = cudock_load::run(settings, requests).unwrap();
    let counted = report.latency.count
        + report.refused.count
        + report.failed.count
        + report.broken_count()
        + report.unanswered;
    assert_eq!(counted, report.requests, "every request comes to one end: {report:?}");
    report
}
