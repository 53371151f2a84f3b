//! Starts that are interrupted: nothing is left of them, and incomplete work is never used.

use std::fs;
use std::process::{Child, Stdio};

use cudock_testkit::tar::Tar;
use rustix::process::Signal;

use super::images::Image;
use super::leftovers::{groups, leftovers};
use super::machine::{Machine, machine, run_arguments, send, until};
use crate::support::{code, shown};

/// An image with so many files that a volume is filled for a while.
fn image_of_many(machine: &Machine) {
    let tar = (0..6000).fold(Tar::default(), |tar, number| tar.file(&format!("srv/{number}"), "x"));
    Image::of(machine).raw_layer(tar).write("app");
    machine.good(&["run", "--rm", "--network", "none", "oci:app", "true"]);
}

const COUNT: [&str; 4] = ["oci:app", "sh", "-c", "find /srv -type f | wc -l"];

/// Starts a container with a new volume, and returns while that is being filled.
fn start(machine: &Machine, options: &[&str], volume: &str) -> Child {
    let mount = format!("{volume}:/srv");
    let arguments = [&["run", "--network", "none", "--name", "one", "-v", &mount], options, &COUNT].concat();
    let mut command = machine.command(&arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let filling = machine.data().join("volumes").join(volume);
    let filling = [filling.join("filling"), filling.join("data")];
    until("the volume is being filled", || {
        filling
            .iter()
            .any(|directory| fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()))
    });
    child
}

#[test]
fn a_signal_ends_a_start_in_order() {
    let Some(machine) = machine() else { return };
    image_of_many(&machine);
    for (number, (options, signal)) in [
        (&["--rm"][..], Signal::INT),
        (&["--rm"], Signal::HUP),
        (&["--rm", "-d"], Signal::TERM),
        (&["--rm", "-d"], Signal::INT),
    ]
    .into_iter()
    .enumerate()
    {
        let volume = format!("v{number}");
        let child = start(&machine, options, &volume);
        send(child.id().into(), signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), 128 + signal.as_raw(), "{options:?} {signal:?}: {}", shown(&output));
        assert!(shown(&output).contains("interrupted before the container started"), "{}", shown(&output));
        until("nothing is left", || leftovers(&machine.data(), machine.cgroup()).is_empty());
        let volume = machine.data().join("volumes").join(volume);
        assert!(!volume.join("filling").exists() && !volume.join("filled").exists());
        assert_eq!(fs::read_dir(volume.join("data")).unwrap().count(), 0);
    }
    let again = ["run", "--rm", "--network", "none", "--name", "one", "-v", "v0:/srv"];
    assert_eq!(machine.good(&[&again[..], &COUNT].concat()), "6000\n");
}

#[test]
fn an_interrupted_start_without_rm_is_listed_with_the_reason_and_can_be_started_again() {
    let Some(machine) = machine() else { return };
    image_of_many(&machine);
    let child = start(&machine, &[], "kept");
    send(child.id().into(), Signal::TERM);
    assert_eq!(code(&child.wait_with_output().unwrap()), 143);
    let status = machine.status("one");
    assert_eq!((&status["state"], &status["exit_code"]), (&"exited".into(), &143.into()), "{status:#}");
    assert_eq!(status["error"], "interrupted before the container started");
    assert_eq!(machine.good(&["start", "--attach", "one"]), "6000\n");
}

#[test]
fn what_a_killed_start_leaves_takes_no_name_and_is_cleared_away() {
    let Some(machine) = machine() else { return };
    image_of_many(&machine);
    let again = ["run", "--rm", "--network", "none", "--name", "one", "-v", "next:/srv"];
    let mut child = start(&machine, &["--rm"], "next");
    child.kill().unwrap();
    child.wait().unwrap();
    // The name is free without any other command in between, and the volume is whole.
    assert_eq!(machine.good(&[&again[..], &COUNT].concat()), "6000\n");
    let mut child = start(&machine, &["--rm"], "other");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(machine.list().is_empty());
    until("nothing is left", || leftovers(&machine.data(), machine.cgroup()).is_empty());
    assert!(!machine.data().join("volumes/other/filling").exists());
    // One that was to be kept keeps its name.
    let mut child = start(&machine, &[], "third");
    child.kill().unwrap();
    child.wait().unwrap();
    let message = machine.bad(2, &[&again[..], &COUNT].concat());
    assert!(message.contains("the name `one` is in use"), "{message}");
    assert_eq!(machine.list()[0]["state"], "created");
}

#[test]
fn a_container_that_is_being_started_is_not_taken_for_an_abandoned_one() {
    let Some(machine) = machine() else { return };
    image_of_many(&machine);
    let child = start(&machine, &["--rm"], "busy");
    // Each of these clears leftovers away.
    for _ in 0..3 {
        machine.good(&["ps", "--all"]);
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"6000\n"[..]), "{}", shown(&output));
}

#[test]
fn a_volume_that_was_removed_halfway_does_not_come_back_with_half_its_files() {
    let Some(machine) = machine() else { return };
    // As a removal leaves it that was killed on a full disk, or one of an earlier version.
    fs::create_dir_all(machine.data().join("volumes/half/data")).unwrap();
    fs::write(machine.data().join("volumes/half/data/old"), "old").unwrap();
    assert_eq!(machine.says(&["-v", "half:/half"], "ls /half"), "");
    machine.good(&["volume", "rm", "half"]);
    fs::create_dir_all(machine.data().join("volumes/half/data")).unwrap();
    machine.good(&["ps"]);
    assert!(!machine.data().join("volumes/half").exists());
}

#[test]
fn the_first_process_of_a_container_does_not_wait_for_a_start_that_was_killed() {
    let Some(machine) = machine() else { return };
    // Mounting these takes a while, during which that process waits.
    let mounts: Vec<String> = (0..300).map(|number| format!("--tmpfs=/m/{number}")).collect();
    let mounts: Vec<&str> = mounts.iter().map(String::as_str).collect();
    let processes = || -> String {
        let files = groups(machine.cgroup()).into_iter().map(|group| group.join("cgroup.procs"));
        files.filter_map(|file| fs::read_to_string(file).ok()).collect()
    };
    for round in 0..5 {
        let name = format!("waiting-{round}");
        let arguments =
            run_arguments(&[&["--rm", "--name", &name], &mounts[..]].concat(), &["sleep", "1000"]);
        let mut child =
            machine.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("it has a process", || !processes().is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        until("the kernel has ended that, too", || processes().is_empty());
    }
    assert!(machine.list().is_empty());
}
