//! Throughput and latency of forwarding, compared with a direct connection over the same loopback device.
//!
//! `cargo bench -p cudock-netns --bench forward [-- MEBIBYTES]`; needs root or a user namespace.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark may fail loudly"
)]

use std::env;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use cudock_netns::Namespace;
use cudock_netns::forward::{self, ForwardOptions, Forwarder, Handover, Listeners, PortMapping, RelayMode};

/// The hidden verb.
const VERB: &str = "forward";
const RUNS: usize = 5;
const ROUND_TRIPS: u32 = 5000;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [verb, handover] = arguments.as_slice()
        && verb == VERB
    {
        forward::serve(&Handover::decode(handover).unwrap()).unwrap();
        return;
    }
    let mebibytes: u32 = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(1024);
    let made = match Namespace::create() {
        Ok(made) => made,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let direct = serve(TcpListener::bind("127.0.0.1:0").unwrap());
    serve(thread::scope(|scope| {
        let bound = scope.spawn(|| {
            made.enter().unwrap();
            TcpListener::bind("127.0.0.1:80").unwrap()
        });
        bound.join().unwrap()
    }));
    println!("{mebibytes} MiB each time, {RUNS} runs, median; round trips of one byte: {ROUND_TRIPS}");
    println!("{:<10} {:>12} {:>12} {:>14} {:>12}", "", "to, MiB/s", "from, MiB/s", "trip p50, us", "p99, us");
    report("direct", direct, mebibytes);
    for relay_mode in [RelayMode::Copy, RelayMode::Splice] {
        let listeners = Listeners::bind(&PortMapping::parse("127.0.0.1::80").unwrap()).unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        command.arg(VERB);
        let options = ForwardOptions { relay_mode, ..ForwardOptions::default() };
        let forwarder = Forwarder::start(command, listeners, &made, options).unwrap();
        let port = forwarder.mappings()[0].host_port;
        report(&relay_mode.to_string(), SocketAddr::from(([127, 0, 0, 1], port)), mebibytes);
        // CPU time does not depend on how busy the machine is.
        let before = ticks(forwarder.pid());
        send(SocketAddr::from(([127, 0, 0, 1], port)), mebibytes);
        let spent = f64::from(ticks(forwarder.pid()) - before) * 10.0 * 1024.0 / f64::from(mebibytes);
        println!("{:<10} {spent:>12.0} ms of forwarder CPU time per GiB", relay_mode.to_string());
        connections(&relay_mode.to_string(), port);
    }
}

/// The CPU time of a process, in hundredths of a second.
fn ticks(pid: u32) -> u32 {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let behind_name = line.rsplit_once(") ").unwrap().1;
    behind_name.split(' ').skip(11).take(2).map(|field| field.parse::<u32>().unwrap()).sum()
}

/// A server with three services, selected by the first byte: discard all bytes, send N bytes, echo each byte.
fn serve(listener: TcpListener) -> SocketAddr {
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                stream.set_nodelay(true).unwrap();
                let (mut buffer, mut word) = (vec![7; 256 * 1024], [0; 1]);
                stream.read_exact(&mut word).unwrap();
                match word[0] {
                    b't' => {
                        while stream.read(&mut buffer).unwrap() > 0 {}
                        stream.write_all(b"!").unwrap();
                    }
                    b'f' => {
                        let mut count = [0; 8];
                        stream.read_exact(&mut count).unwrap();
                        for _ in 0..u64::from_le_bytes(count) * 4 {
                            stream.write_all(&buffer).unwrap();
                        }
                    }
                    _ => {
                        while let Ok(count @ 1..) = stream.read(&mut buffer) {
                            stream.write_all(&buffer[..count]).unwrap();
                        }
                    }
                }
            });
        }
    });
    address
}

fn report(name: &str, address: SocketAddr, mebibytes: u32) {
    let rate = |time: Duration| f64::from(mebibytes) / time.as_secs_f64();
    let to = median(|| send(address, mebibytes));
    let from = median(|| take(address, mebibytes));
    let mut trips = round_trips(address);
    trips.sort_unstable();
    let micros = |index: usize| trips[index].as_secs_f64() * 1e6;
    println!(
        "{name:<10} {:>12.0} {:>12.0} {:>14.1} {:>12.1}",
        rate(to),
        rate(from),
        micros(trips.len() / 2),
        micros(trips.len() * 99 / 100)
    );
}

fn median(mut run: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS).map(|_| run()).collect();
    times.sort_unstable();
    times[RUNS / 2]
}

fn send(address: SocketAddr, mebibytes: u32) -> Duration {
    let mut stream = TcpStream::connect(address).unwrap();
    let block = vec![7; 256 * 1024];
    let start = Instant::now();
    stream.write_all(b"t").unwrap();
    for _ in 0..mebibytes * 4 {
        stream.write_all(&block).unwrap();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_exact(&mut [0; 1]).unwrap();
    start.elapsed()
}

fn take(address: SocketAddr, mebibytes: u32) -> Duration {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut block = vec![0; 256 * 1024];
    let start = Instant::now();
    stream.write_all(b"f").unwrap();
    stream.write_all(&u64::from(mebibytes).to_le_bytes()).unwrap();
    let mut left = (mebibytes as usize) << 20;
    while left > 0 {
        left -= stream.read(&mut block).unwrap();
    }
    start.elapsed()
}

fn round_trips(address: SocketAddr) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(b"e").unwrap();
    let trip = |stream: &mut TcpStream| {
        let start = Instant::now();
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
        start.elapsed()
    };
    (0..ROUND_TRIPS).map(|_| trip(&mut stream)).collect()
}

/// A new connection for each of many requests, one after another.
fn connections(name: &str, port: u16) {
    let start = Instant::now();
    let count = 2000;
    for _ in 0..count {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"ex").unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
    }
    println!(
        "{name:<10} {:>12.0} connections a second, one after the other",
        f64::from(count) / start.elapsed().as_secs_f64()
    );
}
