//! Signals, and the exit that they cause.

use rustix::process::Signal;

use super::machine::{machine, run_arguments, send, until};
use crate::support::{code, shown};

/// A script that prints the signal it received and exits with a code of its own.
const LISTENS: &str = "trap 'echo TERM came; exit 41' TERM; trap 'echo INT came; exit 42' INT
trap 'echo HUP came; exit 43' HUP; trap 'echo QUIT came; exit 44' QUIT; trap 'echo USR1 came; exit 45' USR1
echo ready; while :; do sleep 0.05; done";

const DEAF: &str = "trap '' TERM INT; echo ready; while :; do sleep 0.05; done";

#[test]
fn signals_are_passed_on() {
    let Some(machine) = machine() else { return };
    let all = [
        (Signal::TERM, "TERM", 41),
        (Signal::INT, "INT", 42),
        (Signal::HUP, "HUP", 43),
        (Signal::QUIT, "QUIT", 44),
        (Signal::USR1, "USR1", 45),
    ];
    for (signal, name, expected) in all {
        let child = machine.spawn(&["--name", name], LISTENS);
        machine.until_logged(name, "ready");
        send(child.id().into(), signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), expected, "{}", shown(&output));
        assert!(shown(&output).contains(&format!("{name} came")), "{}", shown(&output));
    }
}

#[test]
fn three_interrupts_end_a_program_that_does_not_listen() {
    let Some(machine) = machine() else { return };
    let mut child = machine.spawn(&["--name", "deaf"], DEAF);
    machine.until_logged("deaf", "ready");
    let mut sent = 0;
    until("it ends", || {
        if sent < 3 {
            send(child.id().into(), Signal::INT);
            sent += 1;
        }
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().code(), Some(137));
}

#[test]
fn stop_asks_first() {
    let Some(machine) = machine() else { return };
    machine.start("polite", &[], LISTENS);
    machine.until_logged("polite", "ready");
    assert_eq!(machine.good(&["stop", "polite"]), "polite\n");
    let status = machine.status("polite");
    assert_eq!((&status["state"], &status["exit_code"]), (&"exited".into(), &41.into()), "{status:#}");
    assert_eq!(machine.good(&["stop", "polite"]), "polite\n", "one that ended may be stopped again");
}

#[test]
fn stop_ends_what_does_not_listen() {
    let Some(machine) = machine() else { return };
    machine.start("deaf", &[], DEAF);
    machine.until_logged("deaf", "ready");
    let began = std::time::Instant::now();
    machine.good(&["stop", "--time", "1", "deaf"]);
    assert!(began.elapsed().as_millis() >= 1000, "it was given its second");
    assert_eq!(machine.status("deaf")["exit_code"], 137);
    machine.start("deaf-too", &["--stop-timeout", "0"], DEAF);
    machine.until_logged("deaf-too", "ready");
    machine.good(&["stop", "deaf-too"]);
    assert_eq!(machine.status("deaf-too")["exit_code"], 137);
}

#[test]
fn the_signal_that_asks_can_be_chosen() {
    let Some(machine) = machine() else { return };
    for (signal, expected) in [("USR1", 45), ("SIGINT", 42), ("3", 44)] {
        let name = format!("by-{signal}");
        machine.start(&name, &["--stop-signal", signal], LISTENS);
        machine.until_logged(&name, "ready");
        machine.good(&["stop", &name]);
        assert_eq!(machine.status(&name)["exit_code"], expected);
    }
}

#[test]
fn a_program_begins_with_no_signal_blocked_or_ignored() {
    let Some(machine) = machine() else { return };
    // Those above are the C library's own; it has them ignored in what it starts.
    let ordinary = 0x7fff_ffff;
    let calm = |text: &str| {
        let masks: Vec<u64> =
            text.lines().map(|line| u64::from_str_radix(line[7..].trim(), 16).unwrap()).collect();
        assert!(masks.len() == 3 && masks.iter().all(|mask| mask & ordinary == 0), "{text}");
    };
    let program = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"];
    calm(&machine.good(&run_arguments(&["--rm"], &program)));
    machine.start("calm", &[], "sleep 1000");
    calm(&machine.good(&[&["exec", "calm"], program.as_slice()].concat()));
}
