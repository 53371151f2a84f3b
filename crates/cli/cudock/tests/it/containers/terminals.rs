//! Containers with a terminal.

use super::machine::{installed, machine, run_arguments, until};
use super::pseudo_terminal::Terminal;
use crate::support::{code, shown};

#[test]
fn a_terminal_has_our_size_and_follows_it() {
    let Some(machine) = machine() else { return };
    if !installed("setsid") {
        return;
    }
    let script = "trap 'echo now $(stty size)' WINCH; echo first $(stty size); while :; do sleep 0.1; done";
    let command = machine.command(&run_arguments(&["-it", "--rm", "--name", "sized"], &["sh", "-c", script]));
    let mut terminal = Terminal::start(&command, 37, 101);
    terminal.until_shown("first 37 101");
    terminal.resize(20, 64);
    terminal.until_shown("now 20 64");
    terminal.keys("\u{3}");
    assert_eq!(terminal.wait(), Some(130), "{}", terminal.shown());
}

#[test]
fn keys_go_to_the_program_and_our_terminal_is_as_it_was_after_it() {
    let Some(machine) = machine() else { return };
    if !installed("setsid") {
        return;
    }
    let script = "tty; echo ready; read line; echo \"heard $line\"; exit 7";
    let command = machine.command(&run_arguments(&["-it", "--rm"], &["sh", "-c", script]));
    let mut terminal = Terminal::start(&command, 24, 80);
    terminal.until_shown("ready");
    assert!(!terminal.is_cooked(), "keys are passed on one by one while it runs");
    terminal.keys("some words\r");
    terminal.until_shown("heard some words");
    assert_eq!(terminal.wait(), Some(7), "{}", terminal.shown());
    assert!(terminal.is_cooked(), "our terminal is as it was");
    let shown = terminal.shown();
    assert!(shown.contains("/dev/pts/0"), "its terminal is one of its own: {shown}");
    assert_eq!(
        shown.matches("some words").count(),
        2,
        "it is shown once as typed and once as heard: {shown}"
    );
}

#[test]
fn our_terminal_is_as_it_was_after_a_program_that_was_killed() {
    let Some(machine) = machine() else { return };
    if !installed("setsid") {
        return;
    }
    let command =
        machine.command(&run_arguments(&["-it", "--name", "cut"], &["sh", "-c", "echo ready; sleep 1000"]));
    let mut terminal = Terminal::start(&command, 24, 80);
    terminal.until_shown("ready");
    machine.good(&["stop", "--time", "0", "cut"]);
    assert_eq!(terminal.wait(), Some(137));
    assert!(terminal.is_cooked());
}

#[test]
fn exec_has_a_terminal_of_its_own() {
    let Some(machine) = machine() else { return };
    if !installed("setsid") {
        return;
    }
    machine.start("host", &[], "sleep 1000");
    let script = "echo size $(stty size); tty; read line; echo \"heard $line\"; exit 9";
    let command = machine.command(&["exec", "-it", "host", "sh", "-c", script]);
    let mut terminal = Terminal::start(&command, 33, 77);
    terminal.until_shown("size 33 77");
    terminal.until_shown("/dev/pts/");
    assert!(!terminal.is_cooked());
    terminal.keys("words\r");
    assert_eq!(terminal.wait(), Some(9), "{}", terminal.shown());
    terminal.until_shown("heard words");
    assert!(terminal.is_cooked());
}

#[test]
fn a_detached_container_may_have_a_terminal_too() {
    let Some(machine) = machine() else { return };
    machine.start("alone", &["-t"], "tty; test -t 1 && echo a terminal; exit 6");
    assert_eq!(machine.good(&["wait", "alone"]), "6\n");
    let logs = machine.logs("alone");
    assert!(logs.contains("/dev/pts/0") && logs.contains("a terminal"), "{logs}");
}

#[test]
fn a_terminal_needs_one_at_the_other_end() {
    let Some(machine) = machine() else { return };
    machine.start("host", &[], "sleep 1000");
    let pipes = [std::process::Stdio::null, std::process::Stdio::piped];
    for arguments in [run_arguments(&["-it", "--rm"], &["sh"]), vec!["exec", "-it", "host", "sh"]] {
        for stdin in pipes {
            let mut child = machine
                .command(&arguments)
                .stdin(stdin())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut ended = None;
            until("it ends", || {
                ended = ended.or(child.try_wait().unwrap());
                ended.is_some()
            });
            let output = child.wait_with_output().unwrap();
            assert_eq!(code(&output), 2, "{arguments:?}: {}", shown(&output));
            assert!(shown(&output).contains("the input device is not a TTY"), "{}", shown(&output));
        }
    }
    // Without input, or in the background, there is nothing to be typed.
    assert_eq!(machine.good(&run_arguments(&["-t", "--rm"], &["echo", "seen"])), "seen\r\n");
    machine.good(&run_arguments(&["-dit", "--name", "later"], &["sh"]));
    assert_eq!(machine.status("later")["state"], "running");
}
