//! Probes that join a container, as a hostile program in it sees them.

use std::fs;
use std::process::Command;

use super::machine::{container, group, machine, until};
use super::rootfs::rootfs;

/// So many probes are watched in all, at least.
const ATTEMPTS: usize = 200;

#[test]
fn a_probe_that_joins_shows_nothing_of_this_machine() {
    let Some(machine) = machine() else { return };
    let source = machine.path().join("spy.c");
    fs::write(&source, include_str!("../escapes/spy.c")).unwrap();
    let program = rootfs().unwrap().join("bin/spy");
    let made = Command::new("cc").arg("-static").arg("-o").arg(&program).arg(&source).status();
    if !made.is_ok_and(|status| status.success()) {
        cudock_testkit::missing("cc", "there is no C compiler that makes static programs");
        return;
    }
    let canary = machine.path().join("canary");
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).unwrap();
    let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(&canary, &secret).unwrap();
    let here = machine.path().display();
    let spy = format!("exec spy {} {} {here}", canary.display(), env!("CARGO_BIN_EXE_cudock"));
    let probes = "      livenessProbe: {exec: {command: ['true']}, periodSeconds: 1, timeoutSeconds: 60}\n      \
                  readinessProbe: {exec: {command: ['true']}, periodSeconds: 1, timeoutSeconds: 60}\n";
    let mut containers = Vec::new();
    for (kind, added) in
        [("plain", ""), ("trace", "SYS_PTRACE"), ("all", "SYS_PTRACE, SYS_ADMIN, DAC_READ_SEARCH, NET_ADMIN")]
    {
        for number in 0..3 {
            let right = if added.is_empty() {
                String::new()
            } else {
                format!("      securityContext: {{capabilities: {{add: [{added}]}}}}\n")
            };
            containers.push(container(&format!("{kind}{number}"), &spy, &format!("{probes}{right}")));
        }
    }
    machine.up_well(&group("spies", "", &containers));
    let names: Vec<String> = ["plain", "trace", "all"]
        .iter()
        .flat_map(|kind| (0..3).map(move |number| format!("{kind}{number}")))
        .collect();
    let joined = |log: &str| -> usize {
        log.lines().filter_map(|line| line.strip_prefix("so far ")?.parse::<usize>().ok()).max().unwrap_or(0)
    };
    until("enough probes have joined", || {
        let logs = names.iter().map(|name| machine.logs(&format!("spies/{name}")));
        logs.map(|log| joined(&log)).sum::<usize>() >= ATTEMPTS
    });
    for name in names {
        let log = machine.logs(&format!("spies/{name}"));
        for word in ["OUTSIDE", "READ", "RIGHTS", "LEAK", &secret] {
            assert!(!log.contains(word), "{name}: {log}");
        }
    }
}
