//! A network, a localhost and ports that a group has in common.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::machine::{container, group, machine, until};
use crate::support::{json, shown};

const SERVICE: &str = "httpd -f -p 127.0.0.1:8081 -h /www";
const GATEWAY: &str = "httpd -f -p 8080 -h /www";

const READY: &str = "      readinessProbe:
        exec: {command: [wget, -qO, /dev/null, 'http://127.0.0.1:8081/hello']}
        periodSeconds: 1
        timeoutSeconds: 20
";

/// The service of the group's story: a service that only localhost reaches, and a gateway that everybody does.
fn pair(name: &str) -> String {
    let gateway =
        "      readinessProbe: {httpGet: {path: /hello, port: 8080}, periodSeconds: 1, timeoutSeconds: 20}\n";
    let ports = "  ipAddress: {type: Public, ports: [{port: 8080}]}\n";
    group(name, ports, &[container("service", SERVICE, READY), container("gateway", GATEWAY, gateway)])
}

/// A port that nobody has, at the moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_gateway_finds_the_service_on_localhost_and_a_published_port_leads_to_the_gateway() {
    let Some(machine) = machine() else { return };
    let port = free_port();
    let publish = format!("127.0.0.1:{port}:8080");
    let file = machine.write(&pair("pair"));
    let arguments = ["up", "-f", &file, "--detach", "--network", "none", "--publish", &publish];
    assert_eq!(machine.good(&arguments), "pair\n");
    assert!(get(port, "/cgi-bin/ask").ends_with("hello from the service\n"), "{}", get(port, "/cgi-bin/ask"));
    let shown = machine.group("pair");
    assert_eq!(shown["state"], "running");
    assert_eq!(shown["ports"][0], format!("127.0.0.1:{port}->8080/tcp"));
    let text = machine.good(&["groups"]);
    assert!(text.contains("pair  running  2/2"), "{text}");
    machine.good(&["down", "pair"]);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "the port is closed with the group");
}

#[test]
fn two_groups_at_once_have_networks_of_their_own() {
    let Some(machine) = machine() else { return };
    let (one, two) = (free_port(), free_port());
    for (name, port) in [("one", one), ("two", two)] {
        let file = machine.write(&pair(name));
        let publish = format!("127.0.0.1:{port}:8080");
        machine.good(&["up", "-f", &file, "-d", "--network", "none", "-p", &publish]);
    }
    for port in [one, two] {
        assert!(get(port, "/cgi-bin/ask").ends_with("hello from the service\n"));
    }
    let network = |name: &str| machine.good(&["exec", name, "readlink", "/proc/self/ns/net"]);
    assert_eq!(network("one/service"), network("one/gateway"));
    assert_ne!(network("one/service"), network("two/service"));
    machine.good(&["down", "one"]);
    assert!(get(two, "/cgi-bin/ask").ends_with("hello from the service\n"), "the other group goes on");
}

#[test]
fn containers_of_a_group_answer_to_its_name_in_every_verb() {
    let Some(machine) = machine() else { return };
    machine.up_well(&group("named", "", &[container("only", "echo spoken; sleep 1000", "")]));
    let listed = json(&machine.run(&["ps", "--format", "json"]));
    assert_eq!(listed["containers"][0]["name"], "named.only");
    assert_eq!(listed["containers"][0]["group"], "named");
    assert_eq!(listed["containers"][0]["ready"], true);
    until("it has spoken", || machine.logs("named/only").contains("spoken"));
    assert_eq!(machine.good(&["exec", "named/only", "hostname"]), "named\n");
    assert_eq!(json(&machine.run(&["inspect-container", "named/only"]))["config"]["group"], "named");
}

#[test]
fn a_port_in_use_is_reported_and_nothing_is_left() {
    let Some(machine) = machine() else { return };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let publish = format!("127.0.0.1:{}:8080", taken.local_addr().unwrap().port());
    let file = machine.write(&pair("taken"));
    for detach in [true, false] {
        let mut arguments = vec!["up", "-f", &file, "--network", "none", "-p", &publish];
        arguments.extend(detach.then_some("--detach"));
        let output = machine.run(&arguments);
        assert_eq!(output.status.code(), Some(3), "{}", shown(&output));
        assert!(shown(&output).contains("in use"), "{}", shown(&output));
        assert_eq!(
            json(&machine.run(&["ps", "--all", "--format", "json"]))["containers"],
            serde_json::json!([])
        );
        assert_eq!(json(&machine.run(&["groups", "--format", "json"]))["groups"], serde_json::json!([]));
    }
}

#[test]
fn a_group_can_share_this_machines_network() {
    let Some(machine) = machine() else { return };
    let file = machine.write(&group("shared", "", &[container("a", "sleep 1000", "")]));
    machine.good(&["up", "-f", &file, "-d", "--network", "host"]);
    let ours = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(
        machine.good(&["exec", "shared/a", "readlink", "/proc/self/ns/net"]).trim(),
        ours.to_str().unwrap()
    );
}
