//! `/etc/passwd` and `/etc/group` of an image, which are read before its program starts.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::canary::Canary;
use super::run;
use crate::containers::machine::machine;
use crate::support::shown;

/// Replaces a file with something that is not text.
fn put(place: &Path, kind: &str, canary: &Canary) {
    let made = |command: &mut Command| assert!(command.status().unwrap().success(), "{kind}");
    let _ = fs::remove_file(place);
    match kind {
        "a pipe" => made(Command::new("mkfifo").arg(place)),
        "an endless device" => made(Command::new("mknod").arg(place).args(["c", "1", "5"])),
        "a link to a file of this machine" => symlink(canary.victim(), place).unwrap(),
        "a link with parents" => {
            symlink(format!("../../../../../../../../../..{}", canary.victim()), place).unwrap();
        }
        "a link to itself" => symlink("passwd", place).unwrap(),
        "a link to a descriptor" => symlink("/proc/self/fd/0", place).unwrap(),
        "four gigabytes of nothing" => File::create(place).unwrap().set_len(4 << 30).unwrap(),
        "a line without an end" => fs::write(place, "root:".repeat(1 << 20)).unwrap(),
        "a million lines" => fs::write(place, "ann:x:1:1::/:/bin/sh\n".repeat(1_000_000)).unwrap(),
        "no text" => fs::write(place, [0xff; 4096]).unwrap(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_hostile_list_of_users_neither_leaks_nor_holds_us_up() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    for kind in [
        "a pipe",
        "an endless device",
        "a link to a file of this machine",
        "a link with parents",
        "a link to itself",
        "a link to a descriptor",
        "four gigabytes of nothing",
        "a line without an end",
        "a million lines",
        "no text",
    ] {
        for file in ["etc/passwd", "etc/group"] {
            let place = machine.root().join(file);
            let before = fs::read(&place).unwrap();
            put(&place, kind, &canary);
            for options in [
                &[][..],
                &["--user", "1000:100"],
                &["--user", "root"],
                &["--user", "nobody", "--group-add", "video"],
            ] {
                let what = format!("{kind} as {file}, {options:?}");
                let output = run::sh(&machine, &what, options, "echo ran");
                let ran = run::ran(&what, &output);
                canary.is_safe(&what, &output);
                let numbers = options.last().is_none_or(|user| user.starts_with("1000"));
                assert!(ran || !numbers, "numbers need no list: {what}: {}", shown(&output));
            }
            fs::remove_file(&place).unwrap();
            fs::write(&place, before).unwrap();
        }
    }
}

#[test]
fn a_list_of_users_that_turns_hostile_does_not_hold_exec_up() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    machine.start("held", &[], "rm /etc/passwd; mkfifo /etc/passwd; echo turned; sleep 1000");
    machine.until_logged("held", "turned");
    let output = run::ended("exec", machine.command(&["exec", "held", "/bin/echo", "ran"]));
    assert!(run::ran("exec", &output), "{}", shown(&output));
    canary.is_safe("exec", &output);
}
