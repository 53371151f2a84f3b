//! `/dev` and what is in it, chosen by the attacker: the node that hides files, terminals, the console.

use std::fs;
use std::os::unix::fs::symlink;

use super::canary::Canary;
use super::links::{mirror, replace};
use super::run;
use crate::containers::machine::{Machine, machine};
use crate::support::shown;

/// A directory that is given as `/dev`, in which a name is a link.
fn devices(machine: &Machine, name: &str, to: &str) -> String {
    let directory = machine.path().join("devices");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir(&directory).unwrap();
    symlink(to, directory.join(name)).unwrap();
    directory.to_str().unwrap().to_owned()
}

/// A script that prints the content of files that must be hidden.
const HIDDEN: &str =
    "for file in /proc/keys /proc/timer_list /proc/interrupts /proc/kcore /proc/latency_stats
do test -e $file && head -c 64 $file; done";

#[test]
fn dev_null_as_a_link_hides_no_less_and_opens_nothing() {
    // CVE-2025-31133: the target of /dev/null is mounted over the hidden files.
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    mirror(&machine, &canary);
    for to in [
        canary.victim(),
        format!("{}/null", canary.path()),
        "/proc/sys/kernel/core_pattern".to_owned(),
        "/proc/1/environ".to_owned(),
    ] {
        let what = format!("/dev/null -> {to}");
        replace(&machine, "dev/null", &to);
        let output = run::sh(&machine, &what, &[], &format!("{HIDDEN}; {}", canary.raid()));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{what}: {}", shown(&output));
        canary.is_safe(&what, &output);
        let directory = devices(&machine, "null", &to);
        let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
        let script = format!("echo '|/evil' > /dev/null; echo '|/evil' > /proc/keys; {}", canary.raid());
        let what = format!("{what} in a volume");
        let output = run::sh(&machine, &what, &["-v", &format!("{directory}:/dev")], &script);
        run::ran(&what, &output);
        canary.is_safe(&what, &output);
        assert_eq!(fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap(), pattern, "{what}");
    }
}

#[test]
fn the_console_and_terminals_as_links_open_nothing() {
    // CVE-2025-52565: a terminal is mounted on the target of /dev/console, before files are hidden.
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    mirror(&machine, &canary);
    for (name, to) in [
        ("console", canary.victim()),
        ("console", "/proc/sys/kernel/core_pattern".to_owned()),
        ("ptmx", format!("{}/ptmx", canary.path())),
        ("pts", canary.path().to_owned()),
        ("shm", canary.path().to_owned()),
        ("stdin", canary.victim()),
        ("fd", canary.path().to_owned()),
        ("tty", canary.victim()),
    ] {
        let what = format!("/dev/{name} -> {to}");
        replace(&machine, &format!("dev/{name}"), &to);
        let output = run::sh(&machine, &what, &["-t"], &canary.raid());
        run::ran(&what, &output);
        canary.is_safe(&what, &output);
        fs::remove_file(machine.root().join("dev").join(name)).unwrap();
        let directory = devices(&machine, name, &to);
        let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
        let what = format!("{what} in a volume");
        let script = format!("(echo '|/evil' > /dev/{name}) 2>/dev/null; {}", canary.raid());
        let output = run::sh(&machine, &what, &["-t", "-v", &format!("{directory}:/dev")], &script);
        run::ran(&what, &output);
        canary.is_safe(&what, &output);
        assert_eq!(fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap(), pattern, "{what}");
    }
}

#[test]
fn nodes_made_inside_open_neither_memory_nor_the_disk_the_canary_is_on() {
    use std::os::unix::fs::MetadataExt;
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    let disk = fs::metadata(canary.path()).unwrap().dev();
    let disk = format!("b {} {}", rustix::fs::major(disk), rustix::fs::minor(disk));
    for node in
        ["c 1 1", "c 1 2", "c 1 4", "c 1 11", "c 10 237", "c 195 0", "c 195 255", "b 8 0", "b 7 0", &disk]
    {
        for options in [&[][..], &["--cap-add", "SYS_ADMIN"]] {
            let script = format!(
                "mknod /tmp/node {node} || exit 0; (exec 3< /tmp/node) && echo opened; (exec 3> /tmp/node) && echo opened; true"
            );
            let output = run::sh(&machine, node, options, &script);
            assert!(run::ran(node, &output), "{}", shown(&output));
            assert!(!shown(&output).contains("opened"), "{node} {options:?}: {}", shown(&output));
        }
    }
}
