//! Upstreams that answer before they have read a request, at any point of it: other requests go on at once.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use cudock_testkit::client::{PATIENCE, TestClient, post};
use cudock_testkit::random::{Random, cases, seed};

use crate::support::{JSON, TestGateway, answer};

/// A body that fits into no socket's buffer.
const LARGE: usize = 8 << 20;

/// What an upstream does after an early answer.
const AFTERWARDS: [&str; 3] = ["hold", "read", "close"];

/// Reads the head of a request: its path, and the length of its body, or `None` if it has no length.
fn read_head(reader: &mut BufReader<TcpStream>) -> Option<(String, Option<usize>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = Some(0);
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else { return Some((path, length)) };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok(),
            "transfer-encoding" => length = None,
            _ => {}
        }
    }
}

/// Serves a connection. The query of a request says after how many bytes of the body it is answered, and what then.
fn serve(stream: TcpStream) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (path, length) = read_head(&mut reader)?;
        let parameter =
            |name: &str| path.split(['?', '&']).find_map(|part| part.strip_prefix(name)).map(str::to_owned);
        let early = parameter("after=");
        let read = match &early {
            Some(bytes) => bytes.parse().unwrap(),
            None => length?,
        };
        let mut body = vec![0; read];
        reader.read_exact(&mut body).ok()?;
        let status = parameter("status=").unwrap_or_else(|| "200".to_owned());
        let text = match early {
            Some(_) => "early".to_owned(),
            None => String::from_utf8(body).unwrap().replace("input", "prediction"),
        };
        let then = parameter("then=");
        let close = if then.as_deref() == Some("close") { "connection: close\r\n" } else { "" };
        let length_line = format!("content-length: {}", text.len());
        write!(writer, "HTTP/1.1 {status} Test\r\n{close}{length_line}\r\n\r\n{text}").ok()?;
        match then.as_deref() {
            // Reads nothing more, and keeps the connection open for longer than any client here waits.
            Some("hold") => thread::sleep(2 * PATIENCE),
            Some("close") => return None,
            Some(_) => {
                let rest = length? - read;
                let _ = std::io::copy(&mut reader.by_ref().take(rest as u64), &mut std::io::sink());
            }
            None => {}
        }
    }
}

fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Begins an upload and returns how many of its bytes were sent, of how many.
fn begin_upload(client: &mut TestClient, random: &mut Random, then: &str, status: u16) -> (usize, usize) {
    let total = 1 + random.below(200_000);
    let sent = random.below(total);
    let after = random.below(sent + 1);
    let path = format!("/upload?after={after}&status={status}&then={then}");
    // How an upstream in this test reads a body in chunks is not known.
    let framing = if then == "hold" && random.one_in(3) {
        format!("transfer-encoding: chunked\r\n\r\n{total:x}\r\n")
    } else {
        format!("content-length: {total}\r\n\r\n")
    };
    client.write(format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{framing}").as_bytes());
    for chunk in vec![b'x'; sent].chunks(1 + random.below(70_000)) {
        // The gateway may have hung up after the answer.
        if client.stream.write_all(chunk).is_err() {
            break;
        }
    }
    (sent, total)
}

#[test]
fn an_early_answer_to_an_upload_stops_no_other_request() {
    // One thread, so that all requests find the same idle connections; a client may be silent for as long as it likes.
    let options = format!("to = ['http://{}']\nclient_timeout = '10m'", upstream());
    let gateway = TestGateway::with_options(&options, |settings| settings.server.io_threads = 1);
    let mut random = Random::new(seed());
    let mut silent = Vec::new();
    for case in 0..cases(40) {
        let status = *random.pick(&[401, 413, 500, 200]);
        // An upstream that accepts a request does not leave the rest of it unread for ever.
        let then = *random.pick(if status == 200 { &AFTERWARDS[1..] } else { &AFTERWARDS });
        let mut client = gateway.connect();
        if random.one_in(8) {
            // The body of a batch: it is sent at once, and more than the upstream reads.
            let path = format!("/predict?after={}&status={status}&then={then}", random.below(LARGE / 2));
            let body = format!("{{\"input\":[\"{}\"]}}", "x".repeat(LARGE));
            client.write(&post(&path, JSON, body.as_bytes()));
            // An upstream that closes the connection may take its answer with it.
            let accepted = if status == 200 { [200, 200, 502] } else { [status, status, 502] };
            assert!(accepted.contains(&client.receive().status), "{path}");
        } else {
            let (sent, total) = begin_upload(&mut client, &mut random, then, status);
            match random.below(3) {
                // The client leaves.
                0 => {}
                // It does not wait for the answer.
                1 => {
                    let _ = client.stream.write_all(&vec![b'x'; total - sent]);
                    silent.push(client);
                }
                // It gets the answer, and sends nothing more.
                _ => {
                    if then != "close" {
                        let response = client.receive();
                        assert_eq!(response.status, status, "{then}: {}", response.text());
                    }
                    silent.push(client);
                }
            }
        }
        for row in 0..3 {
            let response = gateway.predict(&format!("{{\"input\":[{case},{row}]}}"));
            let expected = answer(&format!("[{case},{row}]")).replace(",\"device\":\"cpu\"", "");
            assert_eq!((response.status, response.text()), (200, expected), "{then} {status}");
        }
        // Few connections stay open at once.
        if silent.len() > 8 {
            silent.remove(0);
        }
    }
}
