//! How fast the generator can be: requests a second on one core against a server that does nothing, on another.
//!
//! `cargo bench -p cudock-loadgen --bench ceiling`
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a measurement that fails stops")]

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use cudock_loadgen::payload::{BenchProtocol, InputShape, ModelInput, Recipe, requests};
use cudock_loadgen::{Arrivals, Load, LoadSettings, ServerUrl, run};
use cudock_tensor::DType;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::thread::{CpuSet, sched_setaffinity};

const BODY: &str = "{\"prediction\": [[0.25, 0.5, 0.25]]}";

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    if sched_setaffinity(None, &set).is_err() {
        eprintln!("cannot stay on processor {cpu}: figures will be lower");
    }
}

/// Responses every request with the same bytes, one thread, without looking at more than where a request ends.
fn serve(listener: &TcpListener) {
    pin(1);
    listener.set_nonblocking(true).unwrap();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&epoll, listener, EventData::new_u64(0), EventFlags::IN).unwrap();
    let mut streams: HashMap<u64, (TcpStream, usize)> = HashMap::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = vec![0; 256 << 10];
    let mut next = 1;
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    loop {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None).unwrap();
        for event in &events {
            let token = event.data.u64();
            if token == 0 {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).unwrap();
                    stream.set_nodelay(true).unwrap();
                    epoll::add(&epoll, &stream, EventData::new_u64(next), EventFlags::IN).unwrap();
                    streams.insert(next, (stream, 0));
                    next += 1;
                }
                continue;
            }
            let Some((stream, left)) = streams.get_mut(&token) else { continue };
            match stream.read(&mut buffer) {
                Ok(0) => drop(streams.remove(&token)),
                Ok(count) => {
                    if *left == 0 {
                        let head =
                            buffer[..count].windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
                        let text = std::str::from_utf8(&buffer[..head]).unwrap();
                        let length: usize = text
                            .lines()
                            .find_map(|line| line.strip_prefix("Content-Length: "))
                            .map_or(0, |length| length.parse().unwrap());
                        *left = head + length;
                    }
                    *left -= count;
                    if *left == 0 {
                        stream.write_all(response.as_bytes()).unwrap();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => drop(streams.remove(&token)),
            }
        }
    }
}

fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    std::thread::spawn(move || serve(&listener));
    pin(0);
    let target: ServerUrl = format!("http://{address}").parse().unwrap();
    for (name, elements) in [("1 kB", 50), ("5 kB", 256), ("10 kB", 512)] {
        let input =
            ModelInput { name: "x".to_owned(), dtype: DType::F32, shape: InputShape::Rows(vec![elements]) };
        let recipe = Recipe {
            target: &target,
            path: "/predict",
            protocol: BenchProtocol::Predict,
            inputs: &[input],
            rows: &[1],
            bodies: 16,
            headers: &[],
            seed: 1,
        };
        let pool = requests(&recipe).unwrap();
        let settings = |load| LoadSettings {
            warm_up: Duration::from_millis(500),
            duration: Duration::from_secs(3),
            grace: Duration::from_secs(1),
            connections: 512,
            check_every: 0,
            ..LoadSettings::new(address, load)
        };
        for clients in [1, 8, 32, 128] {
            let report = run(&settings(Load::Closed { clients }), &pool).unwrap();
            assert_eq!(report.broken_count() + report.unanswered, 0, "{:?}", report.broken);
            println!(
                "{name} bodies, {clients:>3} clients: {:>7.0} requests/s, p50 {:.3} ms, p99 {:.3} ms; generator {:.1} us a request",
                report.goodput_per_second,
                report.latency.p50_ms,
                report.latency.p99_ms,
                // Processor time: it tells the ceiling on a machine that is busy with other things, too.
                report.generator_busy.unwrap_or_default() / report.goodput_per_second * 1e6,
            );
        }
        for rate in [1_000.0, 10_000.0, 40_000.0] {
            let report = run(&settings(Load::Open { rate, arrivals: Arrivals::Poisson }), &pool).unwrap();
            println!(
                "{name} bodies, {rate:>6.0} a second: {:>7.0} requests/s, p50 {:.3} ms, p99 {:.3} ms, sent late p99 {:.3} ms, {} connections",
                report.goodput_per_second,
                report.latency.p50_ms,
                report.latency.p99_ms,
                report.sent_late.map(|late| late.p99_ms).unwrap_or_default(),
                report.connections,
            );
        }
    }
}
