//! The end of groups, in order and out of it: nothing is left.

use std::fs;
use std::path::Path;

use cudock_testkit::process::wait_until_gone;
use serde_json::Value;

use super::machine::{Machine, container, group, machine, until};
use crate::support::{code, json, shown};

/// Two containers that do not listen, in a network with a port, with a secret.
fn stubborn(name: &str) -> String {
    let more =
        "  ipAddress: {type: Public, ports: [{port: 8080}]}\n  volumes: [{name: keys, secret: {a: aGk=}}]\n";
    let deaf = "trap '' TERM; sleep 2000 & while true; do sleep 0.1; done";
    let mounts = "      volumeMounts: [{name: keys, mountPath: /keys}]\n";
    group(name, more, &[container("a", deaf, mounts), container("b", deaf, "")])
}

fn start(machine: &Machine, name: &str) {
    let file = machine.write(&stubborn(name));
    machine.good(&["up", "-f", &file, "-d", "--network", "none", "-p", "127.0.0.1:0:8080"]);
}

/// The kernel objects of a group: its processes, the control groups of its containers, and its network.
struct Traces {
    network: String,
    ids: Vec<String>,
    data: String,
}

impl Traces {
    fn of(machine: &Machine, name: &str) -> Self {
        let network = machine.good(&["exec", &format!("{name}/a"), "readlink", "/proc/self/ns/net"]);
        let containers = machine.group(name)["containers"].as_array().unwrap().clone();
        let ids = containers.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
        Self { network: network.trim().to_owned(), ids, data: machine.data().display().to_string() }
    }

    /// Everything that is still there.
    fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let link = fs::read_link(process.path().join("ns/net")).unwrap_or_default();
            let command_line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let command_line = String::from_utf8_lossy(&command_line).replace('\0', " ");
            if link.to_string_lossy() == self.network || command_line.contains(&self.data) {
                left.push(format!("process {command_line}"));
            }
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        left.extend(mounts.lines().filter(|line| line.contains(&self.data)).map(str::to_owned));
        for id in &self.ids {
            groups_named(Path::new("/sys/fs/cgroup"), &format!("cudock-{id}"), 4, &mut left);
        }
        left
    }
}

fn groups_named(directory: &Path, name: &str, depth: u32, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy() == name {
            found.push(format!("control group {}", entry.path().display()));
        } else if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            groups_named(&entry.path(), name, depth - 1, found);
        }
    }
}

#[test]
fn down_ends_a_group_and_leaves_nothing() {
    let Some(machine) = machine() else { return };
    start(&machine, "orderly");
    let traces = Traces::of(&machine, "orderly");
    assert!(traces.left().len() > 2, "the traces are looked for in the wrong places: {:?}", traces.left());
    assert_eq!(machine.good(&["down", "orderly", "--time", "1"]), "orderly\n");
    until("nothing is left", || traces.left().is_empty());
    assert_eq!(json(&machine.run(&["ps", "-a", "--format", "json"]))["containers"], Value::Array(Vec::new()));
    assert_eq!(fs::read_dir(machine.data().join("groups")).unwrap().count(), 0);
    let output = machine.run(&["down", "orderly"]);
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(shown(&output).contains("no group `orderly`"), "{}", shown(&output));
}

#[test]
fn a_killed_supervisor_takes_its_containers_along_and_down_clears_the_rest_away() {
    let Some(machine) = machine() else { return };
    start(&machine, "orphaned");
    let traces = Traces::of(&machine, "orphaned");
    kill_supervisor(&machine, "orphaned");
    until("its containers are gone", || {
        let listed = json(&machine.run(&["ps", "--format", "json"]));
        listed["containers"] == Value::Array(Vec::new())
    });
    let shown = machine.group("orphaned");
    assert_eq!(shown["state"], "lost", "{shown}");
    let all = json(&machine.run(&["ps", "--all", "--format", "json"]));
    assert_eq!(all["containers"].as_array().unwrap().len(), 2, "{all}");
    machine.good(&["down", "orphaned"]);
    until("nothing is left", || traces.left().is_empty());
    assert_eq!(fs::read_dir(machine.data().join("groups")).unwrap().count(), 0);
}

#[test]
fn a_group_whose_supervisor_was_killed_can_be_started_anew() {
    let Some(machine) = machine() else { return };
    start(&machine, "anew");
    let old = Traces::of(&machine, "anew");
    kill_supervisor(&machine, "anew");
    start(&machine, "anew");
    assert_eq!(machine.group("anew")["state"], "running");
    assert_eq!(
        json(&machine.run(&["ps", "--all", "--format", "json"]))["containers"].as_array().unwrap().len(),
        2
    );
    until("nothing is left of the old one", || {
        old.ids.iter().all(|id| !machine.data().join("containers").join(id).exists())
            && !old.left().iter().any(|trace| trace.starts_with("control group"))
    });
}

fn kill_supervisor(machine: &Machine, name: &str) {
    let pid = machine.group(name)["supervisor"].as_u64().unwrap();
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
    wait_until_gone(pid);
}

#[test]
fn down_by_file_ends_the_group_of_that_name() {
    let Some(machine) = machine() else { return };
    let file = machine.write(&group("filed", "", &[container("a", "sleep 1000", "")]));
    machine.good(&["up", "-f", &file, "-d", "--network", "none"]);
    assert_eq!(machine.good(&["down", "-f", &file, "--time", "0"]), "filed\n");
    assert!(!machine.data().join("groups/filed").exists());
}

#[test]
fn a_group_with_a_damaged_status_is_listed_and_ended() {
    let Some(machine) = machine() else { return };
    for text in ["", "{"] {
        start(&machine, "damaged");
        let traces = Traces::of(&machine, "damaged");
        let file = machine.data().join("groups/damaged/group.json");
        fs::write(&file, text).unwrap();
        let group = machine.group("damaged");
        assert_eq!(
            (&group["state"], &group["error"]),
            (&"running".into(), &"its status file is damaged".into())
        );
        machine.good(&["down", "damaged", "--time", "0"]);
        until("nothing is left", || traces.left().is_empty());
        assert!(!machine.data().join("groups/damaged").exists());
    }
}
