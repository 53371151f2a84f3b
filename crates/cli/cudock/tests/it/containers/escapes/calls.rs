//! System calls that reach files and processes without a name inside.

use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Command, Stdio};

use super::canary::Canary;
use super::run;
use crate::containers::machine::machine;
use crate::containers::programs::install;
use crate::support::shown;

/// Tries one way out after the other. `ESCAPED` stands before each that worked.
const OUT: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
static void report(const char *call, long answer) {
    printf("%s%s: %s\n", answer < 0 ? "" : "ESCAPED ", call, answer < 0 ? strerror(errno) : "done");
}
static void show(int directory, const char *path) {
    char text[4096];
    int file = openat(directory, path, O_RDONLY);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text);
    if (size > 0) fwrite(text, 1, (size_t)size, stdout);
}
static void handles(const char *victim) {
    struct { struct file_handle head; unsigned char bytes[128]; } handle;
    int mount;
    handle.head.handle_bytes = 128;
    report("name_to_handle_at", name_to_handle_at(AT_FDCWD, "/etc/hosts", &handle.head, &mount, 0) < 0 ? -1 : -1);
    int place = open("/etc/hosts", O_RDONLY);
    unsigned inodes[] = {2, 1, 64, 128, 256};
    for (int index = 0; index < 5; index++) {
        memset(handle.bytes, 0, sizeof handle.bytes);
        memcpy(handle.bytes, &inodes[index], sizeof inodes[index]);
        handle.head.handle_bytes = 8;
        handle.head.handle_type = 1;
        int got = open_by_handle_at(place, &handle.head, O_RDONLY);
        report("open_by_handle_at", got);
        if (got >= 0) show(got, victim + 1);
    }
}
static void leave_root(const char *victim) {
    mkdir("/tmp/jail", 0700);
    int root = open("/", O_RDONLY);
    if (chroot("/tmp/jail") == 0) {
        fchdir(root);
        for (int step = 0; step < 64; step++) chdir("..");
        chroot(".");
        show(AT_FDCWD, victim);
    }
}
int main(int argc, char **argv) {
    (void)argc;
    const char *victim = argv[1];
    int outside = atoi(argv[2]);
    char bytes[64];
    struct iovec ours = {bytes, sizeof bytes}, theirs = {(void *)0x400000, sizeof bytes};
    setvbuf(stdout, 0, _IOLBF, 0);
    report("kill", kill(outside, SIGKILL));
    report("ptrace attach", ptrace(PTRACE_ATTACH, outside, 0, 0));
    report("ptrace seize", ptrace(PTRACE_SEIZE, outside, 0, 0));
    report("process_vm_readv", process_vm_readv(outside, &ours, 1, &theirs, 1, 0));
    report("pidfd_open", syscall(SYS_pidfd_open, outside, 0));
    report("keyctl session", syscall(SYS_keyctl, 1, 0));
    report("add_key", syscall(SYS_add_key, "user", "cudock", "x", 1, -4));
    report("request_key", syscall(SYS_request_key, "user", "cudock", 0, -4));
    report("unshare mount", unshare(CLONE_NEWNS));
    report("unshare user", unshare(CLONE_NEWUSER));
    report("unshare user and mount", unshare(CLONE_NEWUSER | CLONE_NEWNS));
    report("mount", mount("none", "/tmp", "tmpfs", 0, 0));
    report("open_tree", syscall(428, AT_FDCWD, "/", 1 | 0x8000));
    report("fsopen", syscall(430, "proc", 0));
    report("mount_setattr", syscall(442, AT_FDCWD, "/proc/sys", 0, bytes, 32));
    report("pivot_root", syscall(SYS_pivot_root, "/", "/tmp"));
    report("setns", setns(open("/proc/1/ns/mnt", O_RDONLY), 0));
    report("bpf", syscall(SYS_bpf, 0, 0, 0));
    report("perf_event_open", syscall(SYS_perf_event_open, 0, -1, 0, -1, 0));
    report("init_module", syscall(SYS_init_module, bytes, 64, ""));
    report("finit_module", syscall(SYS_finit_module, 0, "", 0));
    report("kexec_load", syscall(SYS_kexec_load, 0, 0, 0, 0));
    report("userfaultfd", syscall(SYS_userfaultfd, 0));
    report("io_uring_setup", syscall(425, 1, bytes));
    report("swapon", syscall(SYS_swapon, "/etc/hosts", 0));
    report("acct", syscall(SYS_acct, "/tmp/accounts"));
    report("socket vsock", socket(40, SOCK_STREAM, 0));
    report("socket algorithm", socket(38, SOCK_SEQPACKET, 0));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path + 1, argv[3], sizeof address.sun_path - 2);
    int channel = socket(AF_UNIX, SOCK_STREAM, 0);
    report("abstract socket", connect(channel, (struct sockaddr *)&address, (socklen_t)(sizeof(sa_family_t) + 1 + strlen(argv[3]))));
    handles(victim);
    leave_root(victim);
    puts("tried all");
    return 0;
}
"#;

#[test]
fn no_system_call_reaches_what_is_outside() {
    // Among them open_by_handle_at ("shocker"), the double chroot, ptrace, keys, mounts, sockets without a file.
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "out", OUT) else { return };
    let canary = Canary::new();
    let mut outside = Command::new("sleep").arg("1000").stdout(Stdio::piped()).spawn().unwrap();
    let name = format!("cudock-escape-{}", std::process::id());
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    listener.set_nonblocking(true).unwrap();
    machine.start("held", &[], "sleep 1000");
    let attack = format!("out {} {} {name}", canary.victim(), outside.id());
    let exec = run::ended("exec", machine.command(&["exec", "held", "/bin/sh", "-c", &attack]));
    for (how, output) in [
        ("run", run::sh(&machine, "run", &[], &attack)),
        ("as a user", run::sh(&machine, "as a user", &["--user", "ann"], &attack)),
        ("exec", exec),
    ] {
        assert!(shown(&output).contains("tried all"), "{how}: {}", shown(&output));
        assert!(!shown(&output).contains("ESCAPED"), "{how}: {}", shown(&output));
        canary.is_safe(how, &output);
    }
    assert!(listener.accept().is_err(), "someone came out of a container");
    assert!(outside.try_wait().unwrap().is_none(), "the process outside was ended");
    outside.kill().unwrap();
    outside.wait().unwrap();
    let mut left = String::new();
    outside.stdout.take().unwrap().read_to_string(&mut left).unwrap();
    assert_eq!(left, "");
}

#[test]
fn inherited_capabilities_are_none_in_run_and_exec() {
    // CVE-2022-29162, CVE-2025-27612.
    let Some(machine) = machine() else { return };
    let script = "grep -E '^Cap(Inh|Amb):' /proc/self/status";
    let none = "CapInh:\t0000000000000000\nCapAmb:\t0000000000000000\n";
    for options in [
        &[][..],
        &["--cap-add", "SYS_ADMIN"],
        &["--user", "ann"],
        &["--user", "ann", "--cap-add", "SYS_ADMIN"],
    ] {
        let output = run::sh(&machine, "run", options, script);
        assert_eq!(String::from_utf8_lossy(&output.stdout), none, "{options:?}: {}", shown(&output));
    }
    machine.start("held", &["--cap-add", "SYS_ADMIN"], "sleep 1000");
    for user in ["root", "ann"] {
        assert_eq!(machine.good(&["exec", "--user", user, "held", "/bin/sh", "-c", script]), none, "{user}");
    }
}
