//! Command lines of `docker run` from the documentation of popular images, run with an image whose program prints what it sees.
//!
//! The oracle is the container that docker makes of each line (`cudock_testkit::docker_lines`). Lines that need devices or networks that are not
//! here are only parsed, in `src/verbs/containers/request/tests.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cudock_testkit::docker_lines::{DockerLine, Shell, docker_lines};
use serde_json::json;

use super::driver;
use super::images::Image;
use super::machine::{Machine, installed, machine, started_by, until};
use super::pseudo_terminal::Terminal;
use crate::support::{code, shown};

/// Prints what it sees, one fact per line, and waits.
const STAND_IN: &str = r#"#!/bin/sh
echo program=$0
for word in "$@"; do printf 'argument=%s\n' "$word"; done
env | sed 's/^/variable=/'
echo user=$(id -u):$(id -g)
echo directory=$PWD
if test -t 0; then echo stdin=terminal; fi
if test -t 1; then echo stdout=terminal; fi
cut -d' ' -f5 /proc/self/mountinfo | sed 's/^/mount=/'
echo shm=$(df -P -k /dev/shm | tail -1 | tr -s ' ' | cut -d' ' -f2)
echo memlock=$(ulimit -l)
echo stack=$(ulimit -s)
echo ipc=$(readlink /proc/self/ns/ipc)
echo net=$(readlink /proc/self/ns/net)
echo capabilities=$(grep CapBnd /proc/self/status | cut -f2)
echo seccomp=$(grep Seccomp: /proc/self/status | cut -f2)
echo gpus=$(cd /dev; ls -d nvidia[0-9] 2>/dev/null)
echo end=here
exec sleep 1000
"#;

/// The output of a program, by name.
type Seen = BTreeMap<String, Vec<String>>;

fn seen(text: &str) -> Seen {
    let mut seen = Seen::new();
    for (name, value) in text.lines().filter_map(|line| line.trim_end_matches('\r').split_once('=')) {
        seen.entry(name.to_owned()).or_default().push(value.to_owned());
    }
    seen
}

/// Whether this machine has what the line needs.
fn runs_here(line: &DockerLine) -> bool {
    let gpus = line.gpus.as_deref().is_none_or(|gpus| !gpus.contains('2'));
    let limits = line.ulimits.is_empty() || may_raise_limits();
    line.refused.is_none() && line.devices.is_empty() && line.hosts.is_empty() && gpus && limits
}

/// Whether this process may raise its limits (`CAP_SYS_RESOURCE`).
fn may_raise_limits() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << 24) != 0
}

fn write_image(machine: &Machine) {
    let root = machine.root();
    let programs = docker_lines().into_iter().filter_map(|line| line.entrypoint);
    for program in programs.chain(["/stand-in".to_owned()]) {
        let path = root.join(if program.contains('/') { &program[1..] } else { "bin" });
        let path = if program.contains('/') { path } else { path.join(program) };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, STAND_IN).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let passwd = fs::read_to_string(root.join("etc/passwd")).unwrap();
    fs::write(root.join("etc/passwd"), passwd + "triton-server:x:1234:1234::/home:/bin/sh\n").unwrap();
    let config = json!({"Entrypoint": ["/stand-in"], "Cmd": ["default"], "ExposedPorts": {"8888/tcp": {}}});
    Image::of(machine).config(config).write("stand-in");
}

/// The arguments of a line for this machine: with the image that prints what it sees, and with directories of the host below `host`.
fn local_arguments(machine: &Machine, line: &DockerLine, shell: &Shell) -> Vec<String> {
    let mut arguments = line.words(shell);
    let image = arguments.iter().position(|word| *word == line.image).unwrap();
    "oci:stand-in".clone_into(&mut arguments[image]);
    for (source, _) in line.binds.iter().map(|bind| shell.mount(bind)) {
        let here = host_path(machine, &source);
        if line.existing.contains(&source) {
            fs::create_dir_all(&here).unwrap();
        }
        for word in &mut arguments[..image] {
            for (before, after) in [("", ":"), ("source=", ",")] {
                let (written, own) = (format!("{before}{source}{after}"), format!("{before}{here}{after}"));
                *word = word.replacen(&written, &own, 1);
            }
        }
    }
    let mut own = vec!["run".to_owned(), "--network=none".to_owned()];
    if line.gpus.is_some() {
        own.push("--driver-root=driver".to_owned());
    }
    own.into_iter().chain(arguments).collect()
}

/// The path of a directory of the host in this test.
fn host_path(machine: &Machine, source: &str) -> String {
    let below = machine.path().to_str().unwrap();
    if source.starts_with(below) { source.to_owned() } else { format!("{below}/host{source}") }
}

/// The command in a network of its own, where all ports are free.
fn in_own_network(machine: &Machine, arguments: &[String], line: &DockerLine) -> Command {
    let command = machine.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let script = "busybox ip link set lo up && readlink /proc/self/ns/net > net && exec \"$0\" \"$@\"";
    let mut outer = started_by(&["unshare", "--net", "sh", "-c", script], &command);
    outer.envs(line.passed_on(arguments));
    outer
}

/// A command line that runs.
enum Running {
    Terminal(Terminal),
    Piped(Child),
    Detached,
}

impl Running {
    fn start(mut command: Command, line: &DockerLine) -> Self {
        if line.tty && line.stdin && !line.detach {
            return Self::Terminal(Terminal::start(&command, 40, 200));
        }
        if line.detach {
            let output = command.output().unwrap();
            assert_eq!(code(&output), 0, "{}: {}", line.line, shown(&output));
            return Self::Detached;
        }
        Self::Piped(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// The output of the program, once it is complete.
    fn full_output(&self, machine: &Machine, line: &DockerLine) -> String {
        let mut output = String::new();
        for _ in 0..600 {
            output = match self {
                Self::Terminal(terminal) => terminal.shown(),
                Self::Piped(_) | Self::Detached => {
                    let ids = machine.good(&["ps", "--quiet"]);
                    ids.lines().map(|id| machine.logs(id)).collect()
                }
            };
            if output.contains("end=here") {
                return output;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("it does not run: {}\n{output}", line.line);
    }

    fn end(self) {
        match self {
            Self::Terminal(mut terminal) => drop(terminal.wait()),
            Self::Piped(mut child) => drop(child.wait().unwrap()),
            Self::Detached => {}
        }
    }
}

#[test]
fn documented_command_lines_give_the_containers_that_docker_gives() {
    let Some(machine) = machine() else { return };
    if !installed("unshare") || !installed("setsid") {
        return;
    }
    let Some(_) = driver::install(&machine, "driver", "driver") else { return };
    write_image(&machine);
    let shell = Shell { home: machine.path().join("home"), directory: machine.path().to_owned() };
    let lines: Vec<_> = docker_lines().into_iter().filter(runs_here).collect();
    assert!(lines.len() >= 55, "{} lines", lines.len());
    for line in lines {
        let arguments = local_arguments(&machine, &line, &shell);
        let running = Running::start(in_own_network(&machine, &arguments, &line), &line);
        let output = running.full_output(&machine, &line);
        check(&machine, &line, &shell, &seen(&output));
        let listed = machine.list();
        let id = listed[0]["id"].as_str().unwrap();
        check_list(&line, &listed[0]);
        machine.good(&["kill", id]);
        running.end();
        if !line.rm {
            machine.good(&["rm", "--force", id]);
        }
        until(&format!("it is gone: {}", line.line), || machine.list().is_empty());
    }
}

/// Compares what the program sees with what it sees in docker.
fn check(machine: &Machine, line: &DockerLine, shell: &Shell, seen: &Seen) {
    let all = |name: &str| seen.get(name).cloned().unwrap_or_default();
    let one = |name: &str| all(name).first().cloned().unwrap_or_default();
    let at = &line.line;
    let program = line.entrypoint.clone().unwrap_or_else(|| "/stand-in".to_owned());
    assert!(one("program").ends_with(&program), "{at}: {program}");
    // As in docker, another entry point does not get the image's default arguments.
    let default = if line.entrypoint.is_none() { vec!["default".to_owned()] } else { Vec::new() };
    let arguments = if line.command.is_empty() { default } else { line.command.clone() };
    assert_eq!(all("argument"), arguments, "{at}");
    for variable in &line.env {
        assert!(all("variable").contains(&shell.expand(variable)), "{at}: {variable}");
    }
    let user = line.user.as_ref().map(|user| shell.expand(user));
    let user = match user.as_deref() {
        None | Some("root" | "0") => "0:0",
        Some("triton-server") => "1234:1234",
        Some(numbers) => numbers,
    };
    assert_eq!(one("user"), user, "{at}");
    assert_eq!(one("directory"), line.workdir.as_deref().unwrap_or("/"), "{at}");
    assert_eq!(one("stdout") == "terminal", line.tty, "{at}");
    assert_eq!(one("stdin") == "terminal", line.tty, "{at}: a terminal is all three streams");
    for (source, target) in line.binds.iter().chain(&line.volumes).map(|mount| shell.mount(mount)) {
        assert!(all("mount").contains(&target.trim_end_matches('/').to_owned()), "{at}: {target}");
        assert!(
            !source.starts_with('/') || Path::new(&host_path(machine, &source)).exists(),
            "{at}: {source}"
        );
    }
    check_limits(machine, line, &one);
}

fn check_limits(machine: &Machine, line: &DockerLine, one: &dyn Fn(&str) -> String) {
    let at = &line.line;
    let host = |kind: &str| fs::read_link(format!("/proc/self/ns/{kind}")).unwrap().display().to_string();
    assert_eq!(one("ipc") == host("ipc"), line.ipc.as_deref() == Some("host"), "{at}");
    let net = fs::read_to_string(machine.path().join("net")).unwrap();
    assert_eq!(one("net") == net.trim(), line.network.as_deref() == Some("host"), "{at}");
    if line.ipc.is_none() {
        let expected = line.shm.unwrap_or(64 << 20) / 1024;
        assert_eq!(one("shm"), expected.to_string(), "{at}");
    }
    for limit in &line.ulimits {
        let (name, value) = limit.split_once('=').unwrap();
        let kilobytes =
            value.parse::<u64>().map_or_else(|_| value.to_owned(), |bytes| (bytes / 1024).to_string());
        assert_eq!(one(name), kilobytes, "{at}: {name}");
    }
    let capabilities = u64::from_str_radix(&one("capabilities"), 16).unwrap();
    for (name, number) in [("SYS_ADMIN", 21), ("SYS_PTRACE", 19), ("SYS_NICE", 23)] {
        let added = line.cap_add.iter().any(|added| added == name);
        assert_eq!(capabilities & (1 << number) != 0, added, "{at}: {name}");
    }
    assert_eq!(one("seccomp"), if line.seccomp.is_some() { "0" } else { "2" }, "{at}");
    let gpus = match line.gpus.as_deref() {
        None => "",
        Some("1") => "nvidia0",
        Some(_) => "nvidia0 nvidia1",
    };
    assert_eq!(one("gpus"), gpus, "{at}");
}

fn check_list(line: &DockerLine, listed: &serde_json::Value) {
    let at = &line.line;
    if let Some(name) = &line.name {
        assert_eq!(listed["name"], name.as_str(), "{at}");
    }
    let ports: Vec<&str> =
        listed["ports"].as_array().unwrap().iter().map(|port| port.as_str().unwrap()).collect();
    if line.publish_all {
        assert!(ports.len() == 1 && ports[0].ends_with("->8888/tcp"), "{at}: {ports:?}");
        return;
    }
    let expected = line.ports.iter().map(|port| {
        let (outside, inside) = port.rsplit_once(':').unwrap();
        let outside = if outside.contains(':') { outside.to_owned() } else { format!("0.0.0.0:{outside}") };
        format!("{outside}->{inside}/tcp")
    });
    assert_eq!(ports, expected.collect::<Vec<_>>(), "{at}");
}
