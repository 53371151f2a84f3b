//! Many at once, and those whose watcher was killed.

use std::fs;
use std::process::Stdio;

use cudock_testkit::process::wait_until_gone;
use rustix::process::Signal;
use serde_json::Value;

use super::leftovers::{groups, leftovers};
use super::machine::{Machine, machine, run_arguments, send, until};
use crate::support::{code, shown};

#[test]
fn fifty_run_at_once_and_all_come_to_their_end() {
    let Some(machine) = machine() else { return };
    let children: Vec<_> = (0..50)
        .map(|number: u8| {
            let (name, script) = (
                format!("one-{number}"),
                format!("echo {number}; while test ! -e /go/now; do sleep 0.1; done; exit {number}"),
            );
            fs::create_dir_all(machine.path().join("go")).unwrap();
            let arguments = run_arguments(&["--name", &name, "-v", "go:/go:ro"], &["sh", "-c", &script]);
            let mut command = machine.command(&arguments);
            (number, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        })
        .collect();
    until("all of them run", || {
        let all = machine.list();
        all.len() == 50 && all.iter().all(|one| one["state"] == "running")
    });
    assert_eq!(machine.good(&["ps"]).lines().count(), 51);
    machine.write("go/now", "");
    for (number, child) in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), i32::from(number), "{}", shown(&output));
        assert_eq!(output.stdout, format!("{number}\n").into_bytes());
    }
    assert_eq!(machine.good(&["rm", "--all"]).lines().count(), 50);
}

#[test]
fn one_whose_watcher_was_killed_is_lost_and_can_be_removed() {
    let Some(machine) = machine() else { return };
    let id = machine.start("orphan", &[], "echo begun; sleep 1000 & sleep 1000");
    machine.until_logged("orphan", "begun");
    let status = machine.status("orphan");
    let (watcher, pid) = (status["watcher"].as_u64().unwrap(), status["pid"].as_u64().unwrap());
    send(watcher, Signal::KILL);
    wait_until_gone(pid);
    let listed = machine.good(&["ps", "--all"]);
    assert!(listed.contains("lost"), "{listed}");
    assert_eq!(machine.good(&["ps"]).lines().count(), 1, "it is not among those that run");
    let status = machine.status("orphan");
    assert_eq!((&status["state"], &status["pid"]), (&"lost".into(), &Value::Null), "{status:#}");
    assert!(status["error"].as_str().unwrap().contains("watcher was killed"), "{status:#}");
    assert_eq!(groups(machine.cgroup()), Vec::<std::path::PathBuf>::new(), "its control groups are gone");
    assert_eq!(machine.logs("orphan"), "begun\n", "what it wrote is not");
    assert_eq!(machine.good(&["wait", "orphan"]), "137\n");
    assert_eq!(machine.good(&["rm", &id]), format!("{id}\n"));
    assert_eq!(leftovers(&machine.data(), machine.cgroup()), Vec::<String>::new());
}

#[test]
fn every_verb_finds_out_by_itself_that_a_watcher_is_dead() {
    let Some(machine) = machine() else { return };
    for (name, verb) in [("a", "stop"), ("b", "rm"), ("c", "wait"), ("d", "logs")] {
        machine.start(name, &[], "sleep 1000");
        kill_watcher(&machine, name);
        let output = machine.call(&[verb, name]);
        assert_eq!(code(&output), 0, "{verb}: {}", shown(&output));
    }
    machine.start("e", &[], "sleep 1000");
    kill_watcher(&machine, "e");
    let message = machine.bad(2, &["exec", "e", "true"]);
    assert!(message.contains("container e is lost, not running"), "{message}");
}

#[test]
fn a_foreground_that_was_killed_takes_its_container_with_it() {
    let Some(machine) = machine() else { return };
    let mut child = machine.spawn(&["--name", "front", "-p", "127.0.0.1:0:80"], "echo begun; sleep 1000");
    machine.until_logged("front", "begun");
    let pid = machine.status("front")["pid"].as_u64().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_gone(pid);
    assert_eq!(machine.status("front")["state"], "lost");
    machine.good(&["rm", "front"]);
}

#[test]
fn many_whose_watchers_were_killed_are_cleared_away_together() {
    let Some(machine) = machine() else { return };
    for number in 0..10 {
        machine.start(
            &format!("one-{number}"),
            &["-p", "127.0.0.1:0:80", "--restart", "always"],
            "sleep 1000",
        );
    }
    for one in machine.list() {
        kill_watcher(&machine, one["name"].as_str().unwrap());
    }
    until("all are lost", || machine.list().iter().all(|one| one["state"] == "lost"));
    machine.good(&["rm", "--all"]);
    until("nothing is left", || leftovers(&machine.data(), machine.cgroup()).is_empty());
}

#[test]
fn a_directory_that_a_killed_process_left_is_swept() {
    let Some(machine) = machine() else { return };
    machine.start("whole", &[], "exit 0");
    machine.good(&["wait", "whole"]);
    let half = machine.data().join("containers/0123456789abcdef");
    fs::create_dir_all(half.join("upper")).unwrap();
    assert_eq!(machine.list().len(), 1);
    assert!(!half.exists());
}

#[test]
fn a_control_group_of_another_name_is_found_again_without_the_variable() {
    let Some(machine) = machine() else { return };
    machine.start("elsewhere", &[], "sleep 1000");
    let output =
        machine.command(&["rm", "--force", "elsewhere"]).env_remove("CUDOCK_CGROUP").output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
    until("its control groups are gone", || groups(machine.cgroup()).is_empty());
}

#[test]
fn the_usual_control_group_is_left_empty_too() {
    let Some(machine) = machine() else { return };
    let arguments = run_arguments(&["-d", "--name", "usual"], &["sleep", "1000"]);
    let output = machine.command(&arguments).env_remove("CUDOCK_CGROUP").output().unwrap();
    let id = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let own = || groups("/cudock").into_iter().any(|group| group.ends_with(format!("cudock-{id}")));
    assert!(own(), "it is in a control group");
    let output = machine.command(&["rm", "--force", "usual"]).env_remove("CUDOCK_CGROUP").output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(!own());
}

/// Kills the process that watches a container, and waits until the kernel has done it.
fn kill_watcher(machine: &Machine, name: &str) {
    let watcher = machine.status(name)["watcher"].as_u64().unwrap();
    send(watcher, Signal::KILL);
    wait_until_gone(watcher);
}
