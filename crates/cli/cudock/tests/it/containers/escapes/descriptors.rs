//! Descriptors of this machine's files that are open while a container is made.

use std::process::Command;

use serde_json::json;

use super::canary::Canary;
use super::image;
use super::links::replace;
use super::run;
use crate::containers::machine::{machine, run_arguments};
use crate::containers::programs::install;
use crate::support::{code, shown};

/// Descriptors that are tried, by number.
const NUMBERS: std::ops::RangeInclusive<u32> = 3..=40;

#[test]
fn a_working_directory_that_is_a_descriptor_is_not_outside() {
    // CVE-2024-21626, by the user's option.
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    for number in NUMBERS {
        for directory in [
            format!("/proc/self/fd/{number}"),
            format!("/proc/self/fd/{number}/.."),
            format!("/dev/fd/{number}"),
        ] {
            let output = run::sh(&machine, &directory, &["-w", &directory], &canary.raid());
            run::ran(&directory, &output);
            canary.is_safe(&directory, &output);
        }
    }
    for directory in [
        "/proc/self/cwd",
        "/proc/self/cwd/..",
        "/proc/self/root/..",
        "/proc/1/cwd/../..",
        "/proc/2/cwd",
        "/../..",
    ] {
        let output = run::sh(&machine, directory, &["-w", directory], &canary.raid());
        run::ran(directory, &output);
        canary.is_safe(directory, &output);
    }
}

#[test]
fn a_working_directory_of_an_image_that_is_a_descriptor_is_not_outside() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    for number in NUMBERS {
        let what = format!("WORKDIR /proc/self/fd/{number}");
        let name =
            image::write(&machine, "work", &[], &json!({"WorkingDir": format!("/proc/self/fd/{number}")}));
        let output = run::image(&machine, &what, &[], &name, &["/bin/sh", "-c", &canary.raid()]);
        run::ran(&what, &output);
        canary.is_safe(&what, &output);
    }
}

#[test]
fn a_working_directory_that_is_a_link_to_a_descriptor_is_not_outside() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    for number in NUMBERS {
        replace(&machine, "place", &format!("/proc/self/fd/{number}"));
        for directory in ["/place", "/place/../.."] {
            let what = format!("{directory}, /place -> descriptor {number}");
            let output = run::sh(&machine, &what, &["-w", directory], &canary.raid());
            run::ran(&what, &output);
            canary.is_safe(&what, &output);
        }
    }
}

#[test]
fn a_working_directory_of_exec_that_is_a_descriptor_is_not_outside() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    machine.start("held", &[], "sleep 1000");
    for number in NUMBERS {
        for options in [&["-w"][..], &["-t", "-w"]] {
            let directory = format!("/proc/self/fd/{number}");
            let raid = canary.raid();
            let arguments = [&["exec"], options, &[&directory, "held", "/bin/sh", "-c", &raid]].concat();
            let output = run::ended(&directory, machine.command(&arguments));
            run::ran(&directory, &output);
            canary.is_safe(&directory, &output);
        }
    }
}

/// Prints every descriptor it has beside the first three, and one more: the directory it reads.
const LISTING: &str =
    "ls -l /proc/self/fd 2>/dev/null | grep -v ' [012] -> ' | grep -e '->' ; ls /proc/self/fd | wc -l";

#[test]
fn nothing_that_whoever_starts_it_has_open_is_open_inside() {
    let Some(machine) = machine() else { return };
    machine.start("held", &[], "sleep 1000");
    let run = run_arguments(&["--rm"], &["/bin/sh", "-c", LISTING]);
    let terminal = run_arguments(&["--rm", "-t"], &["/bin/sh", "-c", LISTING]);
    let exec = ["exec", "held", "/bin/sh", "-c", LISTING];
    let exec_terminal = ["exec", "-t", "held", "/bin/sh", "-c", LISTING];
    for arguments in [run.as_slice(), &terminal, &exec, &exec_terminal] {
        let inner = machine.command(arguments);
        // A caller that holds descriptors of the machine's root and a file, and sets `LISTEN_FDS`.
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec 7</ 8</etc/passwd 9>>/dev/null; exec \"$0\" \"$@\""])
            .arg(inner.get_program());
        command.args(inner.get_args()).current_dir(machine.path()).env("LISTEN_FDS", "20");
        for (name, value) in inner.get_envs() {
            value.map(|value| command.env(name, value));
        }
        let output = run::ended("descriptors", command);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", shown(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "4", "{arguments:?}: {}", shown(&output));
    }
}

/// Waits for processes that join the container, and takes their descriptors before they become the program.
const HUNT: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static volatile sig_atomic_t over;
static void end(int signal) { (void)signal; over = 1; }
static const char *name(int descriptor, char *text) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(path, text, 4095);
    text[size > 0 ? size : 0] = 0;
    return text;
}
int main(void) {
    char path[64], text[4096];
    long seen = 0, refused = 0;
    int last = getpid();
    signal(SIGTERM, end);
    setvbuf(stdout, 0, _IOLBF, 0);
    puts("hunting");
    while (!over) for (int pid = last + 1; pid < last + 6; pid++) {
        snprintf(path, sizeof path, "/proc/%d", pid);
        if (access(path, F_OK)) continue;
        seen++;
        while (!over) {
            for (int number = 3; number < 32; number++) {
                snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
                int got = open(path, O_PATH);
                if (got < 0) { if (errno != EACCES) continue; refused++; break; }
                printf("TAKEN %d: %s\n", number, name(got, text));
                int up = openat(got, "..", O_RDONLY | O_DIRECTORY);
                if (up >= 0) { printf("OUTSIDE %s\n", name(up, text)); close(up); }
                close(got);
            }
            snprintf(path, sizeof path, "/proc/%d/exe", pid);
            ssize_t size = readlink(path, text, sizeof text - 1);
            if (size < 0 && errno != EACCES) break;
            if (size > 0) { text[size] = 0; if (strstr(text, "busybox")) break; printf("EXE %s\n", text); }
        }
        last = pid;
    }
    printf("seen %ld, refused %s\n", seen, refused ? "often" : "never");
    return 0;
}
"#;

#[test]
fn a_process_that_joins_cannot_be_robbed_of_its_descriptors() {
    // CVE-2016-9962: between joining and becoming the program, the joining process is visible inside.
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "hunt", HUNT) else { return };
    machine.start("hunter", &[], "exec hunt");
    machine.until_logged("hunter", "hunting");
    for _ in 0..60 {
        machine.good(&["exec", "hunter", "true"]);
    }
    machine.good(&["stop", "hunter"]);
    let log = machine.logs("hunter");
    assert!(log.contains("refused often"), "it saw no one join: {log}");
    for word in ["TAKEN", "OUTSIDE"] {
        assert!(!log.contains(word), "{log}");
    }
}
