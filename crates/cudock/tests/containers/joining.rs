//! Processes that join a container, as a hostile program in it sees them.

use std::fs;
use std::process::{Command, Output};

use super::machine::{Machine, machine, run_words, until};
use super::programs::install;
use super::rootless::Visitor;
use crate::support::{code, shown};

/// How many processes join under each set of capabilities.
const ATTEMPTS: usize = 70;

const CAPABILITIES: [&[&str]; 3] = [&[], &["--cap-add", "SYS_PTRACE"], &["--cap-add", "ALL"]];

/// A text that nobody can guess.
fn secret() -> String {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).unwrap();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Has processes join a container that watches them, and fails if it saw anything of this machine.
fn attack(machine: &Machine, command: &dyn Fn(&[&str]) -> Command) {
    let (contents, mark) = (secret(), secret());
    let canary = machine.write("canary", &contents);
    fs::set_permissions(machine.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = env!("CARGO_BIN_EXE_cudock");
    let call =
        |words: &[&str]| -> Output { command(words).env("SECRET_OF_THE_CALLER", &mark).output().unwrap() };
    for capabilities in CAPABILITIES {
        let options = [&["-d", "--name", "spy"], capabilities].concat();
        let here = machine.path().to_str().unwrap();
        let spy = ["spy", canary.to_str().unwrap(), &mark, program, here];
        let output = call(&run_words(&options, &spy));
        assert_eq!(code(&output), 0, "{}", shown(&output));
        let said = || String::from_utf8_lossy(&call(&["logs", "spy"]).stdout).into_owned();
        until("the spy watches", || said().contains("watching"));
        for attempt in 0..ATTEMPTS {
            let words: &[&str] = match attempt % 4 {
                0 => &["exec", "spy", "true"],
                1 => &["exec", "-i", "spy", "cat"],
                2 => &["exec", "-t", "spy", "true"],
                _ => &["exec", "-w", "/tmp", "-e", "A=b", "spy", "sh", "-c", "exit 0"],
            };
            let output = call(words);
            assert_eq!(code(&output), 0, "{words:?}: {}", shown(&output));
        }
        let output = call(&["stop", "spy"]);
        assert_eq!(code(&output), 0, "{}", shown(&output));
        let said = said();
        let joined =
            said.lines().find_map(|line| line.strip_prefix("joined ")).unwrap_or_else(|| panic!("{said}"));
        let joined: usize = joined.split(',').next().unwrap().parse().unwrap();
        eprintln!("{capabilities:?}: {}", said.lines().last().unwrap_or_default());
        // On a busy machine most are gone before the spy has its turn.
        assert!(joined >= ATTEMPTS / 20, "it saw hardly anyone join, so nothing was tried: {said}");
        assert!(!said.contains(&contents), "the canary was read: {said}");
        for word in ["OUTSIDE", "READ", "RIGHTS", "LEAK"] {
            assert!(!said.contains(word), "{capabilities:?}: {said}");
        }
        let output = call(&["rm", "spy"]);
        assert_eq!(code(&output), 0, "{}", shown(&output));
    }
}

#[test]
fn a_process_that_joins_by_exec_shows_nothing_of_this_machine() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "spy", include_str!("../escapes/spy.c")) else { return };
    attack(&machine, &|words| machine.command(words));
}

#[test]
fn a_process_that_joins_a_users_container_shows_nothing_of_that_user() {
    let Some(visitor) = Visitor::new(true) else { return };
    let Some(_) = install(visitor.machine(), "spy", include_str!("../escapes/spy.c")) else { return };
    attack(visitor.machine(), &|words| visitor.command(words));
}
