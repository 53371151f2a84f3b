//! Unavailable ports, and the life cycle of a forwarder process.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;

use cudock_netns::forward::{ForwardOptions, Forwarder, Listeners, PortMapping};
use cudock_netns::{Namespace, NetnsError};
use cudock_testkit::client::eventually;
use cudock_testkit::process::{is_reentered, is_running, reenter, wait_until_gone};
use cudock_testkit::test_name;

use crate::support::{
    FOREVER, connect, echo, forward, forwarder_command, host_side, namespace, number, serve_inside, start,
};

#[test]
fn a_port_in_use_is_reported_with_its_owner() {
    let test = test_name!();
    if is_reentered(test) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let datagrams = UdpSocket::bind(listener.local_addr().unwrap()).unwrap();
        println!("port: {}", datagrams.local_addr().unwrap().port());
        thread::sleep(FOREVER);
        return;
    }
    let (owner, port) = start(reenter(test), "port: ");
    let pid = owner.0.id();
    for protocol in ["tcp", "udp"] {
        let wanted = PortMapping::parse(&format!("127.0.0.1:{port}:80/{protocol}")).unwrap();
        let error = Listeners::bind(&wanted).unwrap_err();
        let output = error.to_string();
        assert!(
            output.starts_with(&format!("port {port}/{protocol} on 127.0.0.1 is already in use by ")),
            "{output}"
        );
        assert!(output.ends_with(&format!("(pid {pid})")), "{output}");
    }
}

#[test]
fn a_port_published_twice_is_an_error_before_anything_is_bound() {
    let twice = PortMapping::parse("127.0.0.1:18080:80").unwrap().repeat(2);
    assert!(matches!(Listeners::bind(&twice).unwrap_err(), NetnsError::PublishedTwice { port: 18080, .. }));
}

#[test]
fn an_unknown_host_address_is_an_error_with_a_hint() {
    let wanted = PortMapping::parse("203.0.113.77:0:80").unwrap();
    let output = Listeners::bind(&wanted).unwrap_err().to_string();
    assert!(output.ends_with("hint: this host does not have that address"), "{output}");
}

#[test]
fn a_forwarder_has_no_capabilities_and_lives_in_the_containers_namespace() {
    let Some(made) = namespace() else { return };
    serve_inside(&made, "127.0.0.1:80", echo);
    let forwarder = forward(&["127.0.0.1::80"], &made, ForwardOptions::default());
    let mut stream = connect(&forwarder);
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0; 1]).unwrap();
    let number = number(&made);
    let mut serving = 0;
    for task in fs::read_dir(format!("/proc/{}/task", forwarder.pid())).unwrap() {
        let task = task.unwrap().path();
        let its = fs::read_link(task.join("ns/net")).unwrap();
        if its.to_str() == Some(&format!("net:[{number}]")) {
            let status = fs::read_to_string(task.join("status")).unwrap();
            assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
            assert!(status.contains("NoNewPrivs:\t1"), "{status}");
            serving += 1;
        }
    }
    assert_eq!(serving, 1);
}

#[test]
fn a_stopped_forwarder_releases_its_ports() {
    let Some(made) = namespace() else { return };
    let forwarder = forward(&["127.0.0.1::80"], &made, ForwardOptions::default());
    let address = host_side(&forwarder);
    assert!(!forwarder.ends_within(Duration::from_millis(50)), "it runs until it is stopped");
    let pid = forwarder.pid();
    drop(forwarder);
    assert!(!is_running(pid));
    TcpListener::bind(address).unwrap();
}

#[test]
fn a_forwarder_ends_with_its_killed_parent() {
    let test = test_name!();
    if is_reentered(test) {
        let forwarder = forward(&["127.0.0.1::80"], &Namespace::create().unwrap(), ForwardOptions::default());
        println!("started: {} {}", forwarder.pid(), forwarder.mappings()[0].host_port);
        thread::sleep(FOREVER);
        return;
    }
    if namespace().is_none() {
        return;
    }
    let (mut parent, output) = start(reenter(test), "started: ");
    let (pid, port) = output.split_once(' ').unwrap();
    let (pid, port) = (pid.parse::<u32>().unwrap(), port.parse::<u16>().unwrap());
    assert!(is_running(pid));
    parent.0.kill().unwrap();
    parent.0.wait().unwrap();
    wait_until_gone(pid);
    // Another test may use the port for a moment, because the system reuses free ports.
    eventually("the port is free", || TcpListener::bind(("127.0.0.1", port)).is_ok());
}

#[test]
fn a_forwarder_without_its_listener_fails() {
    let text = "1,parent=1,namespace=901,idle=1,carriage=copy,tcp=902:80";
    let mut command = forwarder_command();
    let output = command.arg(text).stderr(std::process::Stdio::piped()).output().unwrap();
    assert!(!output.status.success());
    let output =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("descriptor 901"), "{output}");
}

#[test]
fn a_forwarder_out_of_descriptors_serves_waiting_connections_later() {
    let Some(made) = namespace() else { return };
    serve_inside(&made, "127.0.0.1:80", echo);
    let this = forwarder_command();
    let mut limited = Command::new("sh");
    // Hard and soft limit: enough for about a dozen connections.
    limited.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""]).arg(this.get_program()).args(this.get_args());
    let listeners = Listeners::bind(&PortMapping::parse("127.0.0.1::80").unwrap()).unwrap();
    let forwarder = Forwarder::start(limited, listeners, &made, ForwardOptions::default()).unwrap();
    let mut waiting: Vec<TcpStream> = (0..100).map(|_| connect(&forwarder)).collect();
    for stream in &mut waiting {
        stream.write_all(b"x").unwrap();
    }
    for mut stream in waiting {
        stream.read_exact(&mut [0; 1]).unwrap();
        // Dropping it frees descriptors for the next.
    }
}
