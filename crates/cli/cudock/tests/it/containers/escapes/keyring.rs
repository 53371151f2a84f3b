//! Keys of the caller, which its session keyring gives to all programs that it starts.

use std::process::Command;

use crate::containers::machine::{Machine, machine, run_arguments, started_by};
use crate::containers::programs::install;
use crate::containers::rootless::Visitor;
use crate::support::shown;

/// With arguments, runs them as a command in a session keyring with a key, whose value is the first argument. Without, reads that key.
const KEYRING: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#define SESSION -3
int main(int argc, char **argv) {
    if (argc > 2) {
        if (syscall(SYS_keyctl, 1, 0) < 0) { perror("no keyring"); return 3; }
        if (syscall(SYS_add_key, "user", "canary", argv[1], strlen(argv[1]), SESSION) < 0) { perror("no key"); return 3; }
        /* Everybody who has the keyring may search it and read the key. */
        syscall(SYS_keyctl, 5, syscall(SYS_keyctl, 10, SESSION, "user", "canary", 0), 0x3f3f3f3f);
        execvp(argv[2], argv + 2);
        return 127;
    }
    char text[256] = "";
    long key = syscall(SYS_keyctl, 10, SESSION, "user", "canary", 0);
    if (key < 0 || syscall(SYS_keyctl, 11, key, text, sizeof text) < 0) printf("none: %s\n", strerror(errno));
    else printf("%s\n", text);
    return 0;
}
"#;

/// A program that starts another in a keyring with a key, and the value of the key; `None` without keys in this kernel.
fn keyring(machine: &Machine) -> Option<(String, String)> {
    let program = install(machine, "keyring", KEYRING)?.display().to_string();
    let value = format!("canary-{:08x}", std::process::id());
    let output = Command::new(&program).args([&value, &program]).output().unwrap();
    if output.status.code() == Some(3) {
        cudock_testkit::missing("keyrings", shown(&output));
        return None;
    }
    assert_eq!(
        output.stdout,
        format!("{value}\n").as_bytes(),
        "a program of the host reads it: {}",
        shown(&output)
    );
    Some((program, value))
}

/// Runs the program that reads the key inside, which must not find it.
fn finds_nothing(what: &str, command: &Command, program: &str, value: &str) {
    let output = started_by(&[program, value], command).output().unwrap();
    let text = shown(&output);
    assert!(!text.contains(value), "{what} read the key: {text}");
    assert!(text.contains("none: "), "{what} did not run: {text}");
}

#[test]
fn no_container_and_no_exec_reads_the_keys_of_the_caller_whatever_its_filter() {
    let Some(machine) = machine() else { return };
    let Some((program, value)) = keyring(&machine) else { return };
    machine.write("allow.json", r#"{"defaultAction": "SCMP_ACT_ALLOW"}"#);
    for (number, filter) in
        ["seccomp=unconfined", "seccomp=allow.json", "seccomp=builtin"].into_iter().enumerate()
    {
        let options = ["--security-opt", filter, "--cap-add", "ALL"];
        for extra in [&[][..], &["--init"], &["--user", "1000"]] {
            let arguments = run_arguments(&[&["--rm"], &options[..], extra].concat(), &["keyring"]);
            finds_nothing(&format!("{filter} {extra:?}"), &machine.command(&arguments), &program, &value);
        }
        let name = format!("holder-{number}");
        let arguments = run_arguments(&[&["-d", "--name", &name], &options[..]].concat(), &["sleep", "1000"]);
        let started = started_by(&[&program, &value], &machine.command(&arguments)).output().unwrap();
        assert!(started.status.success(), "{}", shown(&started));
        for arguments in [
            &["exec", &name, "keyring"][..],
            &["exec", "-u", "1000", &name, "keyring"],
            &["exec", "-t", &name, "keyring"],
        ] {
            finds_nothing(&format!("{filter} {arguments:?}"), &machine.command(arguments), &program, &value);
        }
        machine.good(&["rm", "--force", &name]);
    }
}

#[test]
fn containers_of_users_without_rights_do_not_read_them_either() {
    let Some(visitor) = Visitor::new(true) else { return };
    let Some((program, value)) = keyring(visitor.machine()) else { return };
    let arguments = [
        "run",
        "--rm",
        "--network",
        "none",
        "--security-opt",
        "seccomp=unconfined",
        "--rootfs",
        "root",
        "--",
        "keyring",
    ];
    finds_nothing("a container of a user", &visitor.command(&arguments), &program, &value);
}
