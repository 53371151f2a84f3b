//! Exit codes of `run`.

use rustix::process::Signal;

use super::machine::{machine, run_arguments, send};
use crate::support::{code, shown};

#[test]
fn the_exit_code_is_the_programs() {
    let Some(machine) = machine() else { return };
    for expected in [0, 1, 3, 125, 255] {
        let output = machine.sh(&[], &format!("exit {expected}"));
        assert_eq!(code(&output), expected, "{}", shown(&output));
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{}", shown(&output));
    }
}

#[test]
fn a_program_that_is_not_there_is_127() {
    let Some(machine) = machine() else { return };
    let message = machine.bad(127, &run_arguments(&["--rm"], &["no-such-program"]));
    assert!(message.contains("error: `no-such-program` not found in the container's PATH"), "{message}");
    let message = machine.bad(127, &run_arguments(&["--rm"], &["/opt/no/such"]));
    assert!(message.contains("error: /opt/no/such not found in the container"), "{message}");
}

#[test]
fn a_program_that_cannot_be_executed_is_126() {
    let Some(machine) = machine() else { return };
    let message = machine.bad(126, &run_arguments(&["--rm"], &["/etc/passwd"]));
    assert!(message.contains("error: cannot execute /etc/passwd: permission denied"), "{message}");
    let message = machine.bad(126, &run_arguments(&["--rm"], &["/etc"]));
    assert!(message.contains("error: /etc is a directory"), "{message}");
}

#[test]
fn a_program_for_no_machine_is_126_with_the_kernels_message() {
    use std::os::unix::fs::PermissionsExt;
    let Some(machine) = machine() else { return };
    let file = machine.write("root/bin/odd", "neither a binary nor a script\n");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let message = machine.bad(126, &run_arguments(&["--rm"], &["odd"]));
    assert!(message.contains("odd: Exec format error"), "{message}");
}

#[test]
fn a_program_that_a_signal_ended_is_128_and_the_signal() {
    let Some(machine) = machine() else { return };
    let child = machine.spawn(&["--name", "shot"], "echo begun; sleep 1000");
    machine.until_logged("shot", "begun");
    send(machine.status("shot")["pid"].as_u64().unwrap(), Signal::KILL);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 137, "{}", shown(&output));
    let status = machine.status("shot");
    assert_eq!((&status["state"], &status["exit_code"]), (&"exited".into(), &137.into()), "{status:#}");
    assert_eq!(status["out_of_memory"], false, "a signal of ours is not want of memory");
}

#[test]
fn a_detached_start_that_fails_shows_the_reason_and_exits_as_the_foreground_does() {
    let Some(machine) = machine() else { return };
    let message = machine.bad(127, &run_arguments(&["-d"], &["no-such-program"]));
    assert!(message.contains("error: `no-such-program` not found in the container's PATH"), "{message}");
    let message = machine.bad(126, &run_arguments(&["-d"], &["/etc"]));
    assert!(message.contains("error: /etc is a directory"), "{message}");
    let message = machine.bad(2, &run_arguments(&["-d", "--user", "bob"], &["true"]));
    assert!(message.contains("error: the image has no user `bob` in /etc/passwd"), "{message}");
    let output = machine.call(&run_arguments(&["-d", "--rm"], &["no-such-program"]));
    assert!(output.stdout.is_empty(), "{}", shown(&output));
}

#[test]
fn a_start_that_fails_leaves_nothing_when_it_was_to_be_removed() {
    let Some(machine) = machine() else { return };
    for detach in [&["--rm"][..], &["--rm", "-d"]] {
        machine.bad(127, &run_arguments(detach, &["no-such-program"]));
        machine.bad(2, &run_arguments(&[detach, &["--user", "bob"]].concat(), &["true"]));
        assert_eq!(machine.list().len(), 0);
    }
}

#[test]
fn a_bad_call_is_2_and_makes_nothing() {
    let Some(machine) = machine() else { return };
    let calls: [(&[&str], &str); 10] = [
        (&["--memory", "much"], "`much` is not a number of bytes"),
        (&["--cpus", "-"], "`-` is not a number of processors"),
        (&["--restart", "sometimes"], "`sometimes` is not a restart policy"),
        (&["--ulimit", "nofiles=3"], "unknown resource limit `nofiles`"),
        (&["--cap-add", "EVERYTHING"], "EVERYTHING"),
        (&["--name", "-x y"], "is not a valid container name"),
        (&["--stop-signal", "PLEASE"], "unknown signal `PLEASE`"),
        (&["--security-opt", "apparmor=strict"], "--security-opt apparmor=strict is not supported"),
        (&["--rm", "--restart", "always"], "--rm and --restart contradict each other"),
        (&["--workdir", "here"], "the working directory `here` is not an absolute path"),
    ];
    for (options, expected) in calls {
        let message = machine.bad(2, &run_arguments(options, &["true"]));
        assert!(message.contains("error: ") && message.contains(expected), "{options:?}: {message}");
        assert_eq!(machine.list().len(), 0, "{options:?} left a container");
    }
    let message = machine.bad(2, &["run"]);
    assert!(message.contains("error: missing image") && message.contains("hint: "), "{message}");
    let message = machine.bad(2, &["run", "--rootfs", "root"]);
    assert!(message.contains("no command to run"), "{message}");
    let message = machine.bad(2, &["run", "--rootfs", "nowhere", "--", "true"]);
    assert!(message.contains("cannot read nowhere"), "{message}");
}
