//! A group in the foreground: its output, and how it is stopped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::machine::{Machine, container, group, machine};
use crate::support::{code, shown};

fn kill(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn start(machine: &Machine, text: &str) -> Child {
    let file = machine.write(text);
    let mut command = machine.command(&["up", "-f", &file, "--network", "none"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Reads a stream up to a line with this text.
fn read_until(stream: &mut impl BufRead, expected: &str) -> String {
    let mut all = String::new();
    while !all.contains(expected) {
        assert!(stream.read_line(&mut all).unwrap() > 0, "it ended before it printed `{expected}`: {all}");
    }
    all
}

#[test]
fn lines_follow_their_containers_name_and_the_exit_code_shows_how_it_went() {
    let Some(machine) = machine() else { return };
    let jobs = |last: &str| {
        let containers = [container("a", "echo one; echo two >&2", ""), container("longer", last, "")];
        machine.write(&group("jobs", "  restartPolicy: Never\n", &containers))
    };
    let output = machine.run(&["up", "-f", &jobs("echo three"), "--network", "none"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let out = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a      | one", "longer | three"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("a      | two\n"), "{}", shown(&output));
    let output = machine.run(&["up", "-f", &jobs("exit 4"), "--network", "none"]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    assert!(shown(&output).contains("longer : exited with code 4"), "{}", shown(&output));
}

#[test]
fn an_interrupt_asks_all_containers_to_end_and_that_is_no_failure() {
    let Some(machine) = machine() else { return };
    let polite = "trap 'echo bye; exit 0' TERM; echo up; while true; do sleep 0.1; done";
    let mut child =
        start(&machine, &group("polite", "", &[container("a", polite, ""), container("b", polite, "")]));
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    read_until(&mut talk, "all containers are ready");
    let mut out = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..2 {
        read_until(&mut out, "| up\n");
    }
    kill(&child, "-INT");
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
    assert!(rest.contains("a | bye\n") && rest.contains("b | bye\n"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(machine.group("polite")["state"], "stopped");
}

#[test]
fn a_second_interrupt_does_not_wait_for_those_who_do_not_listen() {
    let Some(machine) = machine() else { return };
    let deaf = "trap '' TERM; echo up; while true; do sleep 0.1; done";
    let mut child = start(&machine, &group("deaf", "", &[container("a", deaf, "")]));
    let mut out = BufReader::new(child.stdout.take().unwrap());
    read_until(&mut out, "| up\n");
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    kill(&child, "-TERM");
    read_until(&mut talk, "press Ctrl-C again to kill it");
    kill(&child, "-TERM");
    let rest = read_until(&mut talk, "exited with");
    assert!(rest.contains("exited with code 137"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
