//! Networks, ports that lead in, and the files about them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use super::images::Image;
use super::machine::{installed, machine, run_arguments, until};
use super::programs::{ECHO, install};
use crate::support::{code, shown};

const SERVES: &str = "httpd -f -p 80 -h /www";

/// The response of a server, if any.
fn get(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(b"GET /hello HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn a_port_that_nobody_has_is_found_and_leads_in() {
    let Some(machine) = machine() else { return };
    machine.start("web", &["-p", "0:80"], SERVES);
    let ports = machine.status("web")["ports"].clone();
    let (outside, inside) = ports[0].as_str().unwrap().split_once("->").unwrap();
    assert_eq!(inside, "80/tcp");
    let port: u16 = outside.rsplit(':').next().unwrap().parse().unwrap();
    assert!(port > 0, "{ports}");
    until("it answers", || get(port).is_some_and(|answer| answer.ends_with("hello from inside\n")));
    let listed = machine.good(&["ps"]);
    assert!(listed.contains(&format!(":{port}->80/tcp")), "{listed}");
    machine.good(&["stop", "--time", "0", "web"]);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "the port is closed with the container");
}

#[test]
fn what_listens_on_localhost_inside_is_reached_too() {
    let Some(machine) = machine() else { return };
    machine.start("shy", &["-p", "127.0.0.1:0:80"], "httpd -f -p 127.0.0.1:80 -h /www");
    let ports = machine.status("shy")["ports"].clone();
    let port: u16 = ports[0].as_str().unwrap().split(['-', ':']).nth(1).unwrap().parse().unwrap();
    until("it answers", || get(port).is_some_and(|answer| answer.ends_with("hello from inside\n")));
}

#[test]
fn a_port_for_datagrams_leads_in() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "echo-datagrams", ECHO) else { return };
    machine.start("echo", &["-p", "127.0.0.1:0:53/udp"], "echo-datagrams 53");
    let ports = machine.status("echo")["ports"].clone();
    assert!(ports[0].as_str().unwrap().ends_with("->53/udp"), "{ports}");
    let port: u16 = ports[0].as_str().unwrap().split(['-', ':']).nth(1).unwrap().parse().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut buffer = [0; 64];
    until("it answers", || {
        socket.send_to(b"hello\n", ("127.0.0.1", port)).unwrap();
        socket.recv(&mut buffer).is_ok_and(|count| &buffer[..count] == b"hello\n")
    });
}

#[test]
fn a_port_in_use_is_reported_with_its_process() {
    let Some(machine) = machine() else { return };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let publish = format!("127.0.0.1:{port}:80");
    for options in [&["--rm", "-p", &publish][..], &["--rm", "-d", "-p", &publish]] {
        let message = machine.bad(3, &run_arguments(options, &["true"]));
        assert!(
            message.contains(&format!("error: port {port}/tcp on 127.0.0.1 is already in use")),
            "{message}"
        );
        assert!(
            message.contains(&std::process::id().to_string()),
            "the process that has it is named: {message}"
        );
    }
    until("nothing is left", || machine.list().is_empty());
}

#[test]
fn two_containers_cannot_have_one_port() {
    let Some(machine) = machine() else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let publish = format!("127.0.0.1:{port}:80");
    machine.start("first", &["-p", &publish], SERVES);
    let message = machine.bad(3, &run_arguments(&["--rm", "-d", "-p", &publish], &["true"]));
    assert!(message.contains("is already in use"), "{message}");
    until("it answers", || get(port).is_some());
}

#[test]
fn ports_that_make_no_sense_are_refused() {
    let Some(machine) = machine() else { return };
    for word in ["80:http", "70000:80", "1:2:3:4:5", "80-90:80-81", "80:80/sctp", ""] {
        let message = machine.bad(2, &run_arguments(&["-p", word], &["true"]));
        assert!(message.contains("error: "), "{word}: {message}");
    }
}

#[test]
fn a_published_port_has_no_effect_in_the_network_of_this_machine_as_in_docker() {
    let Some(machine) = machine() else { return };
    let arguments =
        ["run", "--rm", "--network", "host", "-p", "1:80", "--rootfs", "root", "--", "echo", "ran"];
    let output = machine.call(&arguments);
    assert_eq!(output.stdout, b"ran\n", "{}", shown(&output));
    assert!(shown(&output).contains("note: --publish has no effect"), "{}", shown(&output));
}

#[test]
fn all_exposed_ports_are_published_on_free_ones() {
    let Some(machine) = machine() else { return };
    let config = serde_json::json!({
        "Cmd": ["httpd", "-f", "-p", "8080", "-h", "/www"],
        "ExposedPorts": {"8080/tcp": {}, "53/udp": {}},
    });
    Image::of(&machine).config(config).write("app");
    machine.good(&["run", "-d", "-P", "--expose", "9090", "--network", "none", "--name", "web", "oci:app"]);
    let ports = machine.status("web")["ports"].clone();
    let inside: Vec<&str> = ports
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port.as_str().unwrap().split_once("->").unwrap().1)
        .collect();
    assert_eq!(inside, ["53/udp", "8080/tcp", "9090/tcp"]);
    let outside = ports[1].as_str().unwrap().split_once("->").unwrap().0.rsplit(':').next().unwrap();
    let outside: u16 = outside.parse().unwrap();
    until("it answers", || get(outside).is_some_and(|answer| answer.ends_with("hello from inside\n")));
}

#[test]
fn this_machine_is_reached_under_the_name_that_stands_for_it() {
    let Some(machine) = machine() else { return };
    if !installed("pasta") || own_address().is_none() {
        cudock_testkit::missing("network", "this machine has no network to lead out to");
        return;
    }
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 512];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nof the host\n");
        }
    });
    let url = format!("http://host.docker.internal:{port}/");
    let script = ["sh", "-c", "for i in 1 2 3; do wget -qO- \"$0\" && exit; sleep 0.3; done; exit 1", &url];
    for network in ["pasta", "host"] {
        let own = ["run", "--rm", "--network", network, "--add-host", "host.docker.internal:host-gateway"];
        let arguments = [&own[..], &["--rootfs", "root", "--"], &script].concat();
        assert_eq!(machine.good(&arguments), "of the host\n", "{network}");
    }
    let message = machine.bad(2, &run_arguments(&["--rm", "--add-host", "h:host-gateway"], &["true"]));
    assert!(message.contains("host-gateway") && message.contains("hint: --network pasta"), "{message}");
}

#[test]
fn a_network_of_its_own_has_nothing_but_itself() {
    let Some(machine) = machine() else { return };
    assert_eq!(machine.says(&[], "ls /sys/class/net"), "lo\n");
    assert_eq!(machine.says(&[], "cat /sys/class/net/lo/operstate; wc -l < /proc/net/route"), "unknown\n1\n");
    let script =
        "httpd -p 8080 -h /www; wget -qO- http://127.0.0.1:8080/hello; wget -qO- http://localhost:8080/hello";
    assert_eq!(machine.says(&[], script), "hello from inside\n".repeat(2), "its own localhost works");
}

#[test]
fn this_machines_network_is_shared_with_network_host() {
    let Some(machine) = machine() else { return };
    let arguments =
        ["run", "--rm", "--network", "host", "--rootfs", "root", "--", "readlink", "/proc/self/ns/net"];
    let ours = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(machine.good(&arguments).trim(), ours.to_str().unwrap());
}

#[test]
fn pasta_leads_out_and_is_the_default_network() {
    let Some(machine) = machine() else { return };
    if !installed("pasta") {
        return;
    }
    if own_address().is_none() {
        cudock_testkit::missing("network", "this machine has no network to lead out to");
        return;
    }
    let script = "ls /sys/class/net | grep -vc '^lo$'; ip route | grep -c ^default; grep -c ^nameserver /etc/resolv.conf";
    for network in [&["--network", "pasta"][..], &["--network", "auto"], &[]] {
        let arguments = [&["run", "--rm"], network, &["--rootfs", "root", "--", "sh", "-c", script]].concat();
        let stdout = machine.good(&arguments);
        assert!(stdout.starts_with("1\n1\n"), "{network:?}: {stdout}");
    }
}

/// The source address of this machine; nothing is sent.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}

#[test]
fn names_resolve_as_the_options_define_them() {
    let Some(machine) = machine() else { return };
    let options = [
        "--add-host",
        "db:10.0.0.5",
        "--add-host",
        "six=fd00::5",
        "--hostname",
        "trainer",
        "--dns",
        "9.9.9.9",
    ];
    let hosts = machine.says(&options, "cat /etc/hosts");
    let line = |address: &str, name: &str| {
        hosts.lines().any(|line| {
            let mut fields = line.split_whitespace();
            fields.next() == Some(address) && fields.any(|word| word == name)
        })
    };
    assert!(line("127.0.0.1", "localhost") && line("10.0.0.5", "db") && line("fd00::5", "six"), "{hosts}");
    assert!(hosts.contains("trainer"), "{hosts}");
    let servers = machine.says(&options, "grep ^nameserver /etc/resolv.conf");
    assert_eq!(servers, "nameserver 9.9.9.9\n");
    assert!(!machine.root().join("etc/hosts").exists(), "the directory it was made of is not written to");
    for (option, word) in [("--add-host", "alone"), ("--add-host", "db:nowhere"), ("--dns", "nine")] {
        let output = machine.call(&run_arguments(&["--rm", option, word], &["true"]));
        assert_eq!(code(&output), 2, "{option} {word}: {}", shown(&output));
        assert!(shown(&output).contains(word.trim_start_matches("db:")), "{}", shown(&output));
    }
}
