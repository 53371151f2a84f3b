//! Servers for `cudock bench`, and a model small enough to be written by hand.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test file uses what it needs")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A request as the server got it.
pub struct Asked {
    pub path: String,
    head: String,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// What the server says to it.
pub struct Said {
    status: u16,
    body: String,
}

impl Said {
    pub fn json(status: u16, body: &str) -> Self {
        Self { status, body: body.to_owned() }
    }
}

/// Starts a server with a thread a connection, and tells its address.
pub fn server(answer: impl Fn(Asked) -> Said + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            std::thread::spawn(move || converse(stream, &*answer));
        }
    });
    url
}

fn converse(mut stream: TcpStream, answer: &dyn Fn(Asked) -> Said) {
    stream.set_nodelay(true).unwrap();
    while let Some(asked) = read(&mut stream) {
        let said = answer(asked);
        let text = format!(
            "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
            said.status,
            said.body.len(),
            said.body
        );
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let mut asked = Asked { path, head, body: Vec::new() };
        let length: usize = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
        if bytes.len() >= end + 4 + length {
            asked.body = bytes[end + 4..end + 4 + length].to_vec();
            return Some(asked);
        }
    }
}

/// An ONNX file of one Relu over rows of so many floats.
pub fn relu_model(width: u8) -> Vec<u8> {
    // Fields of protocol buffers: a number, or bytes behind their length; all short enough for one byte of length.
    let number = |field: u8, value: u8| vec![field << 3, value];
    let bytes = |field: u8, content: &[u8]| {
        [&[field << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
    };
    let text = |field: u8, content: &str| bytes(field, content.as_bytes());
    let rows = bytes(1, &text(2, "N"));
    let columns = bytes(1, &number(1, width));
    let tensor = [number(1, 1), bytes(2, &[rows, columns].concat())].concat();
    let value = |name: &str| [text(1, name), bytes(2, &bytes(1, &tensor))].concat();
    let node = [text(1, "x"), text(2, "y"), text(4, "Relu")].concat();
    let graph = [bytes(1, &node), text(2, "g"), bytes(11, &value("x")), bytes(12, &value("y"))].concat();
    [number(1, 8), bytes(7, &graph), bytes(8, &number(2, 13))].concat()
}
