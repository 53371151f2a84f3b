//! A further process in a container.

use std::io::Write;
use std::process::Stdio;

use rustix::process::Signal;

use super::machine::{machine, send, until};
use crate::support::{code, shown};

#[test]
fn it_ends_with_what_its_program_ended_with() {
    let Some(machine) = machine() else { return };
    machine.start("host", &[], "sleep 1000");
    for expected in [0, 7, 255] {
        let output = machine.call(&["exec", "host", "sh", "-c", &format!("exit {expected}")]);
        assert_eq!(code(&output), expected, "{}", shown(&output));
    }
    let output = machine.call(&["exec", "host", "sh", "-c", "kill -9 $$"]);
    assert_eq!(code(&output), 137, "{}", shown(&output));
    let message = machine.bad(127, &["exec", "host", "no-such-program"]);
    assert!(message.contains("`no-such-program` not found in the container's PATH"), "{message}");
    let message = machine.bad(126, &["exec", "host", "/etc/passwd"]);
    assert!(message.contains("cannot execute /etc/passwd: permission denied"), "{message}");
}

#[test]
fn it_runs_in_the_container_with_its_own_options() {
    let Some(machine) = machine() else { return };
    let options = ["-e", "KIND=container", "--user", "ann", "--workdir", "/srv", "--hostname", "inner"];
    machine.start("host", &options, "sleep 1000");
    let stdout = machine.good(&["exec", "host", "sh", "-c", "echo $KIND $(id -u) $(pwd) $(hostname) $HOME"]);
    assert_eq!(stdout, "container 1000 /srv inner /home/ann\n");
    let own = ["exec", "-e", "KIND=exec", "--user", "root", "--workdir", "/etc", "host", "sh", "-c"];
    let stdout = machine.good(&[own.as_slice(), &["echo $KIND $(id -u) $(pwd) $HOME"]].concat());
    assert_eq!(stdout, "exec 0 /etc /root\n");
    for kind in ["pid", "ipc", "uts", "mnt", "net", "cgroup"] {
        let of = |process: &str| {
            machine.good(&["exec", "host", "readlink", &format!("/proc/{process}/ns/{kind}")])
        };
        assert_eq!(of("1"), of("self"), "{kind}");
    }
}

#[test]
fn both_outputs_and_the_input_are_ours() {
    let Some(machine) = machine() else { return };
    machine.start("host", &[], "sleep 1000");
    let mut command = machine.command(&["exec", "-i", "host", "sh", "-c", "cat; echo talk >&2"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"typed\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"typed\n"[..], &b"talk\n"[..]));
    assert_eq!(machine.good(&["exec", "host", "cat"]), "", "without -i there is nothing to read");
    assert_eq!(machine.logs("host"), "", "what exec writes is not the container's");
    let status = machine
        .command(&["exec", "host", "sh", "-c", "echo x && echo y >&2"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert_eq!(status.unwrap().code(), Some(0), "outputs to /dev/null can be written to");
}

#[test]
fn one_that_does_not_run_cannot_be_entered() {
    let Some(machine) = machine() else { return };
    machine.start("over", &[], "exit 0");
    machine.good(&["wait", "over"]);
    let message = machine.bad(2, &["exec", "over", "true"]);
    assert!(message.contains("error: container over is exited, not running"), "{message}");
    let message = machine.bad(2, &["exec", "nobody", "true"]);
    assert!(
        message.contains("error: no container `nobody`") && message.contains("hint: `cudock ps --all`"),
        "{message}"
    );
}

#[test]
fn signals_reach_it() {
    let Some(machine) = machine() else { return };
    machine.start("host", &[], "sleep 1000");
    let script = "trap 'exit 48' TERM; touch /ready; while :; do sleep 0.05; done";
    let mut child = machine.command(&["exec", "host", "sh", "-c", script]).spawn().unwrap();
    until("it is ready", || code(&machine.call(&["exec", "host", "test", "-e", "/ready"])) == 0);
    send(child.id().into(), Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(48));
    assert_eq!(machine.status("host")["state"], "running", "the container itself goes on");
}

#[test]
fn it_ends_with_the_container() {
    let Some(machine) = machine() else { return };
    machine.start("host", &[], "sleep 1000");
    let mut child =
        machine.command(&["exec", "host", "sh", "-c", "touch /ready; sleep 1000"]).spawn().unwrap();
    until("it is ready", || code(&machine.call(&["exec", "host", "test", "-e", "/ready"])) == 0);
    machine.good(&["stop", "--time", "0", "host"]);
    assert_eq!(child.wait().unwrap().code(), Some(137));
}

#[test]
fn a_hundred_at_once_all_come_back() {
    let Some(machine) = machine() else { return };
    machine.start("host", &[], "sleep 1000");
    let children: Vec<_> = (0..100)
        .map(|number| {
            let script = format!("exit {}", number % 50);
            let mut command = machine.command(&["exec", "host", "sh", "-c", &script]);
            (number % 50, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        })
        .collect();
    for (expected, child) in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), expected, "{}", shown(&output));
    }
    let directory = machine.inspect("host")["directory"].as_str().unwrap().to_owned();
    let left = std::fs::read_dir(directory)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with("exec-"));
    assert_eq!(left.count(), 0, "no file of theirs is left");
}
