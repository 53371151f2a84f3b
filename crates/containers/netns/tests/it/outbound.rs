//! Outbound connections with the real tools, on a simulated host: a namespace with two addresses, a
//! default route, and a name server on its loopback device.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use cudock_netns::outbound::{HostAccess, Outbound, OutboundTool, Tool};
use cudock_netns::{Namespace, NetnsError};
use cudock_testkit::process::{is_reentered, is_running, reenter_as, wait_until_gone};
use cudock_testkit::test_name;

use crate::support::{self, FOREVER, inside, start};

/// The address and gateway of the simulated host, and an address of its other device.
const GATEWAY: &str = "192.0.2.1";
const OTHER: &str = "198.51.100.7";

const HOST: &[&str] = &[
    "link set lo up",
    "link add up0 type veth peer name up1",
    "link set up0 up",
    "link set up1 up",
    "address add 192.0.2.2/24 dev up0",
    "address add 198.51.100.7/24 dev up1",
    "route add default via 192.0.2.1 dev up0",
];

/// Turns this process, which has its own mount and network namespaces, into the simulated host.
fn be_the_host() {
    for line in HOST {
        assert!(Command::new("ip").args(line.split(' ')).status().unwrap().success(), "ip {line}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "nameserver 127.0.0.1\n").unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let real = fs::canonicalize("/etc/resolv.conf").unwrap();
    let status = Command::new("mount").arg("--bind").arg(file.path()).arg(real).status().unwrap();
    assert!(status.success());
}

/// Reruns a test in a process that can become a simulated host; returns the tool inside that process.
fn on_a_host_of_its_own(test: &str, tool: Tool) -> Option<OutboundTool> {
    let found = match find(tool) {
        Ok(found) => found,
        Err(reason) => {
            cudock_testkit::missing(&tool.to_string(), reason);
            return None;
        }
    };
    if is_reentered(test) {
        be_the_host();
        return Some(found);
    }
    assert!(unshared(test).status().unwrap().success(), "the test fails on the simulated host");
    None
}

/// Runs a test again in mount and network namespaces of its own.
fn unshared(test: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--"]).arg(env::current_exe().unwrap());
    reenter_as(command, test)
}

fn find(tool: Tool) -> Result<OutboundTool, String> {
    for needed in ["unshare", "ip", "mount"] {
        if !["/bin", "/usr/bin", "/sbin", "/usr/sbin"]
            .iter()
            .any(|it| fs::exists(format!("{it}/{needed}")).unwrap())
        {
            return Err(format!("there is no {needed}(8)"));
        }
    }
    let may = Command::new("unshare").args(["--mount", "--net", "true"]).output().unwrap();
    if !may.status.success() {
        return Err(String::from_utf8_lossy(&may.stderr).trim().to_owned());
    }
    if let Err(error) = fs::File::options().read(true).write(true).open("/dev/net/tun") {
        return Err(format!("/dev/net/tun: {error}"));
    }
    let path = ["/usr/bin", "/usr/local/bin"]
        .iter()
        .map(|it| format!("{it}/{tool}"))
        .find(|it| fs::exists(it).unwrap());
    let path = path.ok_or_else(|| format!("{tool} is not installed"))?;
    Ok(OutboundTool { tool, path: path.into() })
}

/// Serves on an address of the host until the process ends.
fn serve(address: SocketAddr) {
    let listener = TcpListener::bind(address).unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.write_all(b"served");
        }
    });
}

/// The response of a server, requested from inside.
fn fetch(namespace: &Namespace, ip: &str, port: u16) -> Option<String> {
    let to = SocketAddr::new(ip.parse::<IpAddr>().unwrap(), port);
    inside(namespace, || {
        let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(2)).ok()?;
        stream.set_read_timeout(Some(FOREVER)).unwrap();
        let mut output = String::new();
        stream.read_to_string(&mut output).ok()?;
        (output == "served").then_some(output)
    })
}

fn reaches_out(test: &str, tool: Tool, gateway: &str) {
    let Some(found) = on_a_host_of_its_own(test, tool) else { return };
    serve(SocketAddr::new(OTHER.parse().unwrap(), 9000));
    serve("127.0.0.1:9001".parse().unwrap());
    let names = UdpSocket::bind("127.0.0.1:53").unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((count, from)) = names.recv_from(&mut buffer) {
            let mut answer = buffer[..count].to_vec();
            // The response bit.
            answer[2] |= 0x80;
            let _ = names.send_to(&answer, from);
        }
    });

    let made = Namespace::create().unwrap();
    assert!(fetch(&made, OTHER, 9000).is_none(), "without a way out nothing is reached");
    let outbound = Outbound::start(&found, &made, HostAccess::NotNeeded).unwrap();
    assert_eq!(fetch(&made, OTHER, 9000).as_deref(), Some("served"), "another address of the host");
    assert!(fetch(&made, gateway, 9001).is_none(), "the host's loopback device is not reached");
    assert!(fetch(&made, "127.0.0.1", 9001).is_none(), "nor under the container's own loopback address");
    ask_for_a_name(&made, outbound.name_server());
    let pid = outbound.pid();
    assert!(!outbound.ends_within(Duration::ZERO));
    drop(outbound);
    assert!(!is_running(pid));
}

/// Sends a DNS query (one A record of `a`) from inside, until the response arrives.
fn ask_for_a_name(namespace: &Namespace, server: IpAddr) {
    let question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01";
    inside(namespace, || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect((server, 53)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut answer = [0; 512];
        for _ in 0..60 {
            socket.send(question).unwrap();
            if socket.recv(&mut answer).is_ok() {
                assert_eq!(answer[..2], question[..2]);
                return;
            }
        }
        panic!("no answer from {server}");
    });
}

#[test]
fn pasta_reaches_what_the_host_reaches_but_not_its_loopback_device() {
    reaches_out(test_name!(), Tool::Pasta, GATEWAY);
}

#[test]
fn slirp_reaches_what_the_host_reaches_but_not_its_loopback_device() {
    reaches_out(test_name!(), Tool::Slirp4netns, "10.0.2.2");
}

fn reaches_the_host(test: &str, tool: Tool) {
    let Some(found) = on_a_host_of_its_own(test, tool) else { return };
    serve("0.0.0.0:9000".parse().unwrap());
    serve("127.0.0.1:9001".parse().unwrap());
    let made = Namespace::create().unwrap();
    let outbound = Outbound::start(&found, &made, HostAccess::Needed).unwrap();
    let host = outbound.host_address().unwrap().to_string();
    assert_eq!(
        fetch(&made, &host, 9000).as_deref(),
        Some("served"),
        "a service on all of its addresses, at {host}"
    );
    assert!(fetch(&made, &host, 9001).is_none(), "the host's loopback device is not reached");
    assert_eq!(fetch(&made, OTHER, 9000).as_deref(), Some("served"), "other addresses are reached, too");
}

#[test]
fn pasta_reaches_services_of_the_host_where_they_are_needed() {
    reaches_the_host(test_name!(), Tool::Pasta);
}

#[test]
fn slirp_reaches_services_of_the_host_where_they_are_needed() {
    reaches_the_host(test_name!(), Tool::Slirp4netns);
}

/// The test reentered is the parent process: it starts the tool, and sleeps.
fn ends_with_its_parent(test: &str, tool: Tool) {
    if is_reentered(test) {
        be_the_host();
        let made = Namespace::create().unwrap();
        let outbound = Outbound::start(&find(tool).unwrap(), &made, HostAccess::NotNeeded).unwrap();
        println!("started: {}", outbound.pid());
        thread::sleep(FOREVER);
        return;
    }
    if let Err(reason) = find(tool) {
        cudock_testkit::missing(&tool.to_string(), reason);
        return;
    }
    let (mut parent, pid) = start(unshared(test), "started: ");
    let pid: u32 = pid.parse().unwrap();
    assert!(is_running(pid));
    parent.0.kill().unwrap();
    parent.0.wait().unwrap();
    wait_until_gone(pid);
}

#[test]
fn pasta_ends_with_its_killed_parent() {
    ends_with_its_parent(test_name!(), Tool::Pasta);
}

#[test]
fn slirp_ends_with_its_killed_parent() {
    ends_with_its_parent(test_name!(), Tool::Slirp4netns);
}

#[test]
fn the_error_output_of_a_failing_tool_is_reported() {
    let Some(made) = support::namespace() else { return };
    if fs::File::options().read(true).write(true).open("/dev/net/tun").is_err() {
        cudock_testkit::missing("tun", "/dev/net/tun cannot be opened");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pasta");
    fs::write(&path, "#!/bin/sh\necho 'no interface to copy' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let found = OutboundTool { tool: Tool::Pasta, path };
    match Outbound::start(&found, &made, HostAccess::NotNeeded).unwrap_err() {
        NetnsError::Outbound { program, output } => {
            assert_eq!((program.as_str(), output.as_str()), ("pasta", "no interface to copy"));
        }
        other => panic!("{other}"),
    }
}
