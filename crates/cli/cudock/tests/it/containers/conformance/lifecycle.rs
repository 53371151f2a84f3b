//! Cases about the life of a container, from its creation to its removal.

use crate::containers::leftovers::groups;
use crate::containers::machine::{Machine, machine, run_arguments, until};
use crate::support::{code, shown};

/// The cases that the tests below mirror.
pub(super) const CASES: &[&str] = &[
    "runc kill: kill detached busybox",
    "runtime-tools killsig",
    "youki killsig",
    "runtime-tools kill_no_effect",
    "youki kill_no_effect",
    "runc delete: runc delete",
    "runc delete: runc delete --force",
    "runtime-tools delete",
    "runtime-tools delete_resources",
    "runc list: list",
    "runc ps: ps after the container stopped",
    "runc ps: ps -f json",
    "runc state: state (kill + delete)",
    "youki lifecycle",
    "runc run: runc run --keep",
    "runc mask: mask paths [prohibit symlink /proc]",
    "runc mask: mask paths [prohibit symlink /sys]",
    "runc mounts: runc run [/proc is a symlink]",
    "runtime-tools create",
    "youki prohibit_symlink",
];

/// A script that ends with a code of its own when a signal comes.
const ENDS: &str = "trap 'exit 9' TERM; trap 'exit 10' USR1; trap 'exit 12' INT; trap 'exit 13' HUP; echo ready; \
                    while true; do sleep 0.1; done";

fn start(machine: &Machine, name: &str, options: &[&str]) {
    machine.start(name, options, ENDS);
    machine.until_logged(name, "ready");
}

#[test]
fn a_container_ends_by_the_signal_it_is_sent() {
    let Some(machine) = machine() else { return };
    for (signal, expected) in [("TERM", 9), ("SIGUSR1", 10), ("2", 12), ("HUP", 13), ("KILL", 137)] {
        start(&machine, "killed", &["--stop-signal", signal]);
        machine.good(&["stop", "killed"]);
        assert_eq!(machine.status("killed")["exit_code"], expected, "{signal}");
        // One that has ended is not ended again.
        machine.good(&["stop", "killed"]);
        assert_eq!(machine.status("killed")["exit_code"], expected, "{signal}");
        machine.good(&["rm", "killed"]);
    }
}

#[test]
fn a_container_is_listed_and_removed_with_all_its_resources() {
    let Some(machine) = machine() else { return };
    start(&machine, "listed", &[]);
    assert_eq!(machine.status("listed")["state"], "running");
    let pid = machine.status("listed")["pid"].as_u64().unwrap();
    assert_eq!(machine.list()[0]["state"], "running");
    assert!(!groups(machine.cgroup()).is_empty());
    let message = machine.bad(2, &["rm", "listed"]);
    assert!(message.contains("is running, not stopped"), "{message}");
    machine.good(&["rm", "--force", "listed"]);
    assert!(machine.list().is_empty());
    assert!(groups(machine.cgroup()).is_empty(), "its control groups are gone");
    until("its process is gone", || !std::path::Path::new(&format!("/proc/{pid}/ns")).exists());
    machine.bad(2, &["inspect-container", "listed"]);
    machine.bad(2, &["rm", "listed"]);
}

#[test]
fn a_container_that_ended_is_kept_until_it_is_removed() {
    let Some(machine) = machine() else { return };
    let output = machine.call(&run_arguments(&["--name", "kept"], &["sh", "-c", "exit 5"]));
    assert_eq!(code(&output), 5, "{}", shown(&output));
    assert_eq!(machine.good(&["ps"]).lines().count(), 1);
    let status = machine.status("kept");
    assert_eq!((&status["state"], &status["exit_code"]), (&"exited".into(), &5.into()));
    machine.bad(2, &run_arguments(&["--name", "kept"], &["true"]));
    machine.bad(2, &["exec", "kept", "true"]);
    machine.good(&["rm", "kept"]);
    assert_eq!(code(&machine.call(&run_arguments(&["--rm", "--name", "kept"], &["true"]))), 0);
}

#[test]
fn an_image_whose_proc_or_sys_is_a_link_is_refused() {
    let Some(machine) = machine() else { return };
    for name in ["proc", "sys", "dev"] {
        let place = machine.root().join(name);
        std::fs::remove_dir(&place).unwrap();
        std::os::unix::fs::symlink("/tmp", &place).unwrap();
        let message = machine.bad(2, &run_arguments(&["--rm"], &["true"]));
        assert!(message.contains(&format!("/{name}")), "{message}");
        std::fs::remove_file(&place).unwrap();
        std::fs::create_dir(&place).unwrap();
    }
}
