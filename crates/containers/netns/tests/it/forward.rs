//! TCP connections to published ports, forwarded by real processes into real namespaces.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use cudock_netns::forward::{ForwardOptions, RelayMode};

use crate::support::{FOREVER, connect, echo, forward, host_side, inside, namespace, serve_inside};

/// A pseudorandom byte sequence.
fn pattern(seed: u64) -> impl FnMut(&mut [u8]) {
    let mut state = seed | 1;
    move |buffer| {
        for eight in buffer.chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            eight.copy_from_slice(&state.to_le_bytes()[..eight.len()]);
        }
    }
}

fn send_pattern(stream: &mut TcpStream, seed: u64, chunks: usize) {
    let (mut next, mut buffer) = (pattern(seed), vec![0; 64 * 1024]);
    for _ in 0..chunks {
        next(&mut buffer);
        stream.write_all(&buffer).unwrap();
    }
    stream.shutdown(Shutdown::Write).unwrap();
}

fn expect_pattern(stream: &mut TcpStream, seed: u64, chunks: usize) {
    let (mut next, mut buffer, mut expected) = (pattern(seed), vec![0; 64 * 1024], vec![0; 64 * 1024]);
    for chunk in 0..chunks {
        next(&mut expected);
        stream.read_exact(&mut buffer).unwrap();
        assert!(buffer == expected, "chunk {chunk} differs");
    }
    assert_eq!(stream.read(&mut buffer).unwrap(), 0, "nothing follows");
}

#[test]
fn a_half_closed_request_still_gets_its_response() {
    let Some(made) = namespace() else { return };
    serve_inside(&made, "127.0.0.1:80", |mut stream| {
        let mut question = String::new();
        stream.read_to_string(&mut question).unwrap();
        write!(stream, "received {question}").unwrap();
    });
    let forwarder = forward(&["127.0.0.1::80"], &made, ForwardOptions::default());
    let mut stream = connect(&forwarder);
    stream.write_all(b"hello").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "received hello");
}

#[test]
fn a_half_closed_response_does_not_end_the_request() {
    let Some(made) = namespace() else { return };
    let (sender, receiver) = std::sync::mpsc::channel();
    serve_inside(&made, "127.0.0.1:80", move |mut stream| {
        stream.write_all(b"enough").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        sender.send(rest).unwrap();
    });
    let forwarder = forward(&["127.0.0.1::80"], &made, ForwardOptions::default());
    let mut stream = connect(&forwarder);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "enough");
    stream.write_all(b"one more thing").unwrap();
    drop(stream);
    assert_eq!(receiver.recv_timeout(FOREVER).unwrap(), "one more thing");
}

fn big_transfers_are_exact(relay_mode: RelayMode) {
    const CHUNKS: usize = 1024;
    let Some(made) = namespace() else { return };
    serve_inside(&made, "127.0.0.1:80", |stream| {
        let mut back = stream.try_clone().unwrap();
        let answer = thread::spawn(move || send_pattern(&mut back, 7, CHUNKS));
        let mut stream = stream;
        expect_pattern(&mut stream, 9, CHUNKS);
        answer.join().unwrap();
    });
    let forwarder =
        forward(&["127.0.0.1::80"], &made, ForwardOptions { relay_mode, ..ForwardOptions::default() });
    let mut stream = connect(&forwarder);
    let mut back = stream.try_clone().unwrap();
    let question = thread::spawn(move || send_pattern(&mut back, 9, CHUNKS));
    expect_pattern(&mut stream, 7, CHUNKS);
    question.join().unwrap();
}

#[test]
fn sixty_four_megabytes_each_way_at_once_are_exact_when_spliced() {
    big_transfers_are_exact(RelayMode::Splice);
}

#[test]
fn sixty_four_megabytes_each_way_at_once_are_exact_when_copied() {
    big_transfers_are_exact(RelayMode::Copy);
}

#[test]
fn two_hundred_concurrent_connections_get_their_own_responses() {
    let Some(made) = namespace() else { return };
    serve_inside(&made, "127.0.0.1:80", echo);
    let forwarder = forward(&["127.0.0.1::80"], &made, ForwardOptions::default());
    let mut streams: Vec<TcpStream> = (0..200).map(|_| connect(&forwarder)).collect();
    for round in 0..3_u32 {
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.write_all(format!("{round:04}{number:04}").as_bytes()).unwrap();
        }
        for (number, stream) in streams.iter_mut().enumerate() {
            let mut answer = [0; 8];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, *format!("{round:04}{number:04}").as_bytes());
        }
    }
}

#[test]
fn two_thousand_connections_are_open_at_once() {
    const COUNT: usize = 2000;
    let Some(made) = namespace() else { return };
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    if limit.is_some_and(|limit| limit < 3 * COUNT as u64) {
        cudock_testkit::missing(
            "open-files",
            format_args!("{limit:?} open files are too few for both ends of {COUNT} connections"),
        );
        return;
    }
    let listener = inside(&made, || TcpListener::bind("127.0.0.1:80").unwrap());
    // A listener whose queue overflows uses SYN cookies, and forgets connections without data.
    socket2::SockRef::from(&listener).listen(i32::try_from(COUNT).unwrap()).unwrap();
    let server = thread::spawn(move || {
        let mut streams: Vec<TcpStream> = (0..COUNT).map(|_| listener.accept().unwrap().0).collect();
        for stream in &mut streams {
            stream.write_all(b"x").unwrap();
        }
    });
    let forwarder = forward(&["127.0.0.1::80"], &made, ForwardOptions::default());
    let clients: Vec<TcpStream> = (0..COUNT).map(|_| connect(&forwarder)).collect();
    for mut client in clients {
        client.read_exact(&mut [0; 1]).unwrap();
    }
    server.join().unwrap();
}

#[test]
fn a_slow_reader_slows_its_writer_down_without_data_loss() {
    let Some(made) = namespace() else { return };
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let gone = std::sync::Arc::new(std::sync::Mutex::new(gone));
    let (sender, receiver) = std::sync::mpsc::channel();
    serve_inside(&made, "127.0.0.1:80", move |mut stream| {
        gone.lock().unwrap().recv().unwrap();
        sender.send(std::io::copy(&mut stream, &mut std::io::sink()).unwrap()).unwrap();
    });
    let forwarder = forward(&["127.0.0.1::80"], &made, ForwardOptions::default());
    let mut stream = connect(&forwarder);
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let (block, mut sent) = (vec![1; 64 * 1024], 0_u64);
    let stuck = loop {
        match stream.write(&block) {
            Ok(count) => sent += count as u64,
            Err(error) => break error.kind(),
        }
        assert!(sent < 1 << 30, "a gigabyte was buffered although nothing is read");
    };
    assert_eq!(stuck, ErrorKind::WouldBlock);
    let status = fs::read_to_string(format!("/proc/{}/status", forwarder.pid())).unwrap();
    let kilobytes: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap();
    assert!(kilobytes < 64 * 1024, "the forwarder holds {kilobytes} kB");
    go.send(()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(receiver.recv_timeout(FOREVER).unwrap(), sent);
}

#[test]
fn a_client_is_disconnected_while_nothing_listens_inside() {
    let Some(made) = namespace() else { return };
    let forwarder = forward(&["127.0.0.1::80"], &made, ForwardOptions::default());
    match connect(&forwarder).read(&mut [0; 1]) {
        Ok(0) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("{other:?}"),
    }
    serve_inside(&made, "127.0.0.1:80", echo);
    let mut stream = connect(&forwarder);
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0; 1]).unwrap();
}

#[test]
fn a_reset_inside_is_passed_on() {
    let Some(made) = namespace() else { return };
    serve_inside(&made, "127.0.0.1:80", |mut stream| {
        // Closing with unread data sends a reset.
        stream.read_exact(&mut [0; 1]).unwrap();
    });
    let forwarder = forward(&["127.0.0.1::80"], &made, ForwardOptions::default());
    let mut stream = connect(&forwarder);
    stream.write_all(b"four").unwrap();
    let error = stream.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn ipv6_outside_and_a_service_on_ipv6_alone_inside() {
    let Some(made) = namespace() else { return };
    serve_inside(&made, "[::1]:80", echo);
    let forwarder = forward(&["[::1]::80"], &made, ForwardOptions::default());
    assert!(host_side(&forwarder).is_ipv6());
    let mut stream = connect(&forwarder);
    stream.write_all(b"six").unwrap();
    let mut answer = [0; 3];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"six");
}

#[test]
fn without_an_address_both_families_are_served() {
    let (Some(host), Some(made)) = (namespace(), namespace()) else { return };
    serve_inside(&made, "127.0.0.1:80", echo);
    inside(&host, || {
        let _forwarder = forward(&["8080:80"], &made, ForwardOptions::default());
        for address in ["127.0.0.1:8080", "[::1]:8080"] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(FOREVER)).unwrap();
            stream.write_all(b"x").unwrap();
            stream.read_exact(&mut [0; 1]).unwrap();
        }
    });
}

#[test]
fn several_ports_lead_to_their_own_services() {
    let Some(made) = namespace() else { return };
    for port in [80, 81] {
        serve_inside(&made, &format!("127.0.0.1:{port}"), move |mut stream| {
            write!(stream, "{port}").unwrap();
        });
    }
    let forwarder = forward(&["127.0.0.1::80", "127.0.0.1::81"], &made, ForwardOptions::default());
    for publication in forwarder.mappings() {
        let mut answer = String::new();
        let mut stream = TcpStream::connect(("127.0.0.1", publication.host_port)).unwrap();
        stream.set_read_timeout(Some(FOREVER)).unwrap();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, publication.container_port.to_string());
    }
}
