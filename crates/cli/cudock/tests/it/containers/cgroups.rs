//! What a container sees of the control groups of this machine.

use std::fs;

use super::leftovers::hierarchies;
use super::machine::{Machine, installed, machine, run_words, started_by};
use crate::support::{code, shown};

/// Runs a command on a machine that also has a part of each hierarchy of control groups mounted elsewhere, as one has in which other
/// containers were made.
fn with_further_mounts(machine: &Machine, words: &[&str]) -> std::process::Output {
    let mount = |(number, hierarchy): (usize, std::path::PathBuf)| {
        let part = hierarchy.join(machine.cgroup().trim_start_matches('/')).join("inner");
        let elsewhere = machine.path().join(format!("inner/{number}")).join(hierarchy.file_name().unwrap());
        let (part, elsewhere) = (part.display(), elsewhere.display());
        format!("mkdir -p {part} {elsewhere} && mount --bind {part} {elsewhere} || exit 9\n")
    };
    let mounts: Vec<String> = hierarchies().into_iter().enumerate().map(mount).collect();
    let script = format!("{} exec \"$0\" \"$@\"", mounts.concat());
    let output =
        started_by(&["unshare", "--mount", "sh", "-c", &script], &machine.command(words)).output().unwrap();
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
    let words = run_words(&["--rm", "--memory", "64m"], &["sh", "-c", &script]);
    let output = with_further_mounts(&machine, &words);
    let said = shown(&output);
    assert_eq!(code(&output), 0, "{said}");
    assert!(said.contains("nothing of the host"), "{said}");
    assert!(!said.contains("/inner/"), "{said}");
    assert!(said.contains("\n67108864\n"), "its own limits are where programs look for them: {said}");
    // A process that joins it is in one group of each hierarchy.
    let words = run_words(&["-d", "--name", "host"], &["sleep", "1000"]);
    assert_eq!(code(&with_further_mounts(&machine, &words)), 0);
    let output = with_further_mounts(
        &machine,
        &["exec", "host", "sh", "-c", "cmp /proc/1/cgroup /proc/self/cgroup && echo same"],
    );
    assert!(shown(&output).contains("same"), "{}", shown(&output));
}
