//! UDP datagrams to published ports, forwarded by real processes into real namespaces.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use cudock_netns::Namespace;
use cudock_netns::forward::{ForwardOptions, Forwarder};
use cudock_testkit::client::eventually;

use crate::support::{forward, host_side, inside, namespace};

fn echo_datagrams(namespace: &Namespace, address: &str) {
    let socket = inside(namespace, || UdpSocket::bind(address).unwrap());
    thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        while let Ok((count, from)) = socket.recv_from(&mut buffer) {
            let mut answer = from.port().to_string().into_bytes();
            answer.push(b' ');
            answer.extend_from_slice(&buffer[..count.min(60000)]);
            let _ = socket.send_to(&answer, from);
        }
    });
}

/// Sends a request until a reply arrives, because datagrams may be lost; returns the client port that the service saw.
fn ask(socket: &UdpSocket, text: &str) -> String {
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut buffer = vec![0; 65536];
    for _ in 0..60 {
        socket.send(text.as_bytes()).unwrap();
        while let Ok(count) = socket.recv(&mut buffer) {
            let answer = String::from_utf8(buffer[..count].to_vec()).unwrap();
            let (port, output) = answer.split_once(' ').unwrap();
            // Anything else is the reply to an earlier request that seemed lost.
            if output == text {
                return port.to_owned();
            }
        }
    }
    panic!("no answer to {} bytes", text.len());
}

fn udp_client(forwarder: &Forwarder) -> UdpSocket {
    let to = host_side(forwarder);
    let socket = UdpSocket::bind(SocketAddr::new(to.ip(), 0)).unwrap();
    socket.connect(to).unwrap();
    socket
}

#[test]
fn replies_are_sent_to_the_right_client() {
    let Some(made) = namespace() else { return };
    echo_datagrams(&made, "127.0.0.1:53");
    let forwarder = forward(&["127.0.0.1::53/udp"], &made, ForwardOptions::default());
    let (one, other) = (udp_client(&forwarder), udp_client(&forwarder));
    let (seen_one, seen_other) = (ask(&one, "one"), ask(&other, "other"));
    assert_ne!(seen_one, seen_other, "each client has a socket of its own inside");
    assert_eq!(ask(&one, "again"), seen_one, "and keeps it");
    assert_eq!(ask(&one, &"x".repeat(50000)), seen_one);
    ask(&one, "");
}

#[test]
fn a_datagram_service_on_ipv6_alone_is_found() {
    let Some(made) = namespace() else { return };
    echo_datagrams(&made, "[::1]:53");
    let forwarder = forward(&["[::1]::53/udp"], &made, ForwardOptions::default());
    ask(&udp_client(&forwarder), "six");
}

#[test]
fn a_datagram_service_that_starts_late_is_found() {
    let Some(made) = namespace() else { return };
    let forwarder = forward(&["127.0.0.1::53/udp", "127.0.0.1::53"], &made, ForwardOptions::default());
    let client = udp_client(&forwarder);
    client.send(b"lost").unwrap();
    // Once it has closed a connection, it is running.
    let mut stream = TcpStream::connect(("127.0.0.1", forwarder.mappings()[1].host_port)).unwrap();
    let _ = stream.read(&mut [0; 1]);
    echo_datagrams(&made, "127.0.0.1:53");
    ask(&client, "found");
}

#[test]
fn an_idle_client_is_removed_and_added_again() {
    let Some(made) = namespace() else { return };
    echo_datagrams(&made, "127.0.0.1:53");
    let options = ForwardOptions { udp_idle: Duration::from_millis(100), ..ForwardOptions::default() };
    let forwarder = forward(&["127.0.0.1::53/udp"], &made, options);
    let client = udp_client(&forwarder);
    let sockets = || fs::read_dir(format!("/proc/{}/fd", forwarder.pid())).unwrap().count();
    ask(&client, "first");
    let with = sockets();
    eventually("the mapping is forgotten", || sockets() < with);
    ask(&client, "second");
}
