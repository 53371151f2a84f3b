//! Upstreams that accept connections and answer nothing.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use cudock_testkit::client::{eventually, get};
use cudock_testkit::http::Server;
use cudock_testkit::process::example;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{LogLines, TestGateway, answer, echo, free_address, raw_upstream};

/// A real process that forwards to a server, and can be stopped.
struct Process {
    child: Child,
    address: std::net::SocketAddr,
}

impl Process {
    fn start(upstream: &Server) -> Self {
        let mut command = Command::new(example("gateway_process"));
        command.arg(upstream.host()).stderr(Stdio::piped());
        // A file there would be read.
        let mut child = command.current_dir("/").spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{line}")).parse().unwrap();
        Self { child, address }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn queued_requests_of_a_stopped_process_are_answered_and_it_is_used_again_when_it_goes_on() {
    let server = Server::start(echo);
    let process = Process::start(&server);
    let log = LogLines::default();
    let options = "concurrency = 1\nhealth_timeout = '500ms'\nhold = '1s'";
    let gateway = TestGateway::with_log(&[process.address], options, &log);
    assert_eq!(gateway.predict("{\"input\":[0]}").status, 200);
    process.signal(Signal::STOP);
    let mut sent = gateway.ask("{\"input\":[1]}");
    eventually("the request is with the server", || gateway.metric("upstream_outstanding") > 0.5);
    let mut queued: Vec<_> = (2..5).map(|row| gateway.ask(&format!("{{\"input\":[{row}]}}"))).collect();
    for client in &mut queued {
        let response = client.receive();
        assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
    }
    gateway.until("upstream_up", 0);
    let lines = log.lines("upstream down");
    assert!(lines[0].contains("no answer to requests or health checks for 500 ms"), "{lines:?}");
    // What had been sent is answered as soon as the process goes on, and what comes then is not kept waiting.
    process.signal(Signal::CONT);
    assert_eq!(sent.receive().text(), answer("[1]"));
    gateway.until("upstream_up", 1);
    assert_eq!(gateway.predict("{\"input\":[5]}").text(), answer("[5]"));
    gateway.until("upstream_outstanding", 0);
}

#[test]
fn queued_requests_of_a_frozen_upstream_go_to_another_one() {
    let is_frozen = Arc::new(AtomicBool::new(false));
    let seen = Arc::new(AtomicUsize::new(0));
    let (own, count) = (Arc::clone(&is_frozen), Arc::clone(&seen));
    let frozen = Server::start(move |request| {
        if request.path == "/predict" {
            count.fetch_add(1, Ordering::SeqCst);
        }
        while own.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(10));
        }
        echo(request)
    });
    let other = free_address();
    let options = "concurrency = 1\nhealth_timeout = '2s'\ntimeout = '6s'";
    let gateway = TestGateway::start(&[frozen.address(), other], options);
    assert_eq!(gateway.predict("{\"input\":[0]}").status, 200);
    is_frozen.store(true, Ordering::SeqCst);
    let mut sent = gateway.ask("{\"input\":[1]}");
    eventually("the request is with the server", || seen.load(Ordering::SeqCst) == 2);
    let mut queued: Vec<_> = (2..5).map(|row| gateway.ask(&format!("{{\"input\":[{row}]}}"))).collect();
    gateway.until("upstream_queue_rows", 3);
    let _other = Server::start_at(other, echo);
    for (row, client) in (2..5).zip(&mut queued) {
        assert_eq!(client.receive().text(), answer(&format!("[{row}]")));
    }
    assert_eq!(sent.receive().status, 504, "it may have been processed");
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    is_frozen.store(false, Ordering::SeqCst);
}

#[test]
fn an_upstream_that_answers_anything_is_not_frozen() {
    let is_busy = AtomicBool::new(false);
    // While it streams an answer, it has no time for health checks.
    let upstream = raw_upstream(move |mut stream, request| {
        if request.path == "/slow" {
            is_busy.store(true, Ordering::SeqCst);
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
            for _ in 0..30 {
                stream.write_all(b"2\r\nab\r\n").unwrap();
                thread::sleep(Duration::from_millis(50));
            }
            stream.write_all(b"0\r\n\r\n").unwrap();
            is_busy.store(false, Ordering::SeqCst);
        } else {
            while is_busy.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(5));
            }
            let body = "ok";
            let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    let log = LogLines::default();
    let options = "health_path = '/alive'\nhealth_timeout = '500ms'";
    let gateway = TestGateway::with_log(&[upstream], options, &log);
    gateway.until("upstream_up", 1);
    assert_eq!(gateway.send(&get("/slow", "")).text(), "ab".repeat(30));
    assert_eq!(log.lines("upstream down"), Vec::<String>::new());
}

#[test]
fn a_request_that_no_upstream_has_time_for_is_answered_when_its_queue_time_is_over() {
    let upstream = raw_upstream(|stream, _| {
        // Silent until the gateway hangs up, but healthy.
        let _ = std::io::copy(&mut &stream, &mut std::io::sink());
    });
    let options = "concurrency = 1\nhold = '100ms'\nqueue_time = '200ms'\ntimeout = '10m'";
    let gateway = TestGateway::start(&[upstream], options);
    gateway.until("upstream_up", 1);
    let _sent = gateway.ask("{\"input\":[0]}");
    eventually("the request is with the server", || gateway.metric("upstream_outstanding") > 0.5);
    let response = gateway.predict("{\"input\":[1]}");
    assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
    assert!(response.text().contains("no upstream is available"), "{}", response.text());
    gateway.until("upstream_up", 1);
}
