//! Control groups of this machine that a container can see.

use std::fs;

use super::leftovers::hierarchies;
use super::machine::{Machine, installed, machine, run_arguments, started_by};
use crate::support::{code, shown};

/// Runs a command on a machine that also has a part of each hierarchy of control groups mounted elsewhere, as one has in which other
/// containers were made.
fn with_further_mounts(machine: &Machine, arguments: &[&str]) -> std::process::Output {
    let mount = |(number, hierarchy): (usize, std::path::PathBuf)| {
        let part = hierarchy.join(machine.cgroup().trim_start_matches('/')).join("inner");
        let elsewhere = machine.path().join(format!("inner/{number}")).join(hierarchy.file_name().unwrap());
        let (part, elsewhere) = (part.display(), elsewhere.display());
        format!("mkdir -p {part} {elsewhere} && mount --bind {part} {elsewhere} || exit 9\n")
    };
    let mounts: Vec<String> = hierarchies().into_iter().enumerate().map(mount).collect();
    let script = format!("{} exec \"$0\" \"$@\"", mounts.concat());
    let output = started_by(&["unshare", "--mount", "sh", "-c", &script], &machine.command(arguments))
        .output()
        .unwrap();
    for hierarchy in hierarchies() {
        let _ = fs::remove_dir(hierarchy.join(machine.cgroup().trim_start_matches('/')).join("inner"));
    }
    output
}

#[test]
fn further_mounts_of_control_groups_are_not_in_containers() {
    let Some(machine) = machine() else { return };
    if !installed("unshare") {
        return;
    }
    let script = format!(
        "test ! -e {path} && echo nothing of the host; cut -d' ' -f5 /proc/self/mountinfo; cat /sys/fs/cgroup/*/memory.limit_in_bytes \
         /sys/fs/cgroup/memory.max 2>/dev/null; true",
        path = machine.path().display()
    );
    let arguments = run_arguments(&["--rm", "--memory", "64m"], &["sh", "-c", &script]);
    let output = with_further_mounts(&machine, &arguments);
    let text = shown(&output);
    assert_eq!(code(&output), 0, "{text}");
    assert!(text.contains("nothing of the host"), "{text}");
    assert!(!text.contains("/inner/"), "{text}");
    assert!(text.contains("\n67108864\n"), "its own limits are where programs look for them: {text}");
    // A process that joins it is in one group of each hierarchy.
    let arguments = run_arguments(&["-d", "--name", "host"], &["sleep", "1000"]);
    assert_eq!(code(&with_further_mounts(&machine, &arguments)), 0);
    let output = with_further_mounts(
        &machine,
        &["exec", "host", "sh", "-c", "cmp /proc/1/cgroup /proc/self/cgroup && echo same"],
    );
    assert!(shown(&output).contains("same"), "{}", shown(&output));
}
