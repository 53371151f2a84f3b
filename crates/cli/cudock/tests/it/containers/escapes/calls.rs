//! System calls that reach what has no name inside.

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
static void tell(const char *call, long answer) {
    printf("%s%s: %s\n", answer < 0 ? "" : "ESCAPED ", call, answer < 0 ? strerror(errno) : "done");
}
static void show(int folder, const char *path) {
    char text[4096];
    int file = openat(folder, path, O_RDONLY);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text);
    if (size > 0) fwrite(text, 1, (size_t)size, stdout);
}
static void handles(const char *victim) {
    struct { struct file_handle head; unsigned char bytes[128]; } handle;
    int mount;
    handle.head.handle_bytes = 128;
    tell("name_to_handle_at", name_to_handle_at(AT_FDCWD, "/etc/hosts", &handle.head, &mount, 0) < 0 ? -1 : -1);
    int place = open("/etc/hosts", O_RDONLY);
    unsigned inodes[] = {2, 1, 64, 128, 256};
    for (int index = 0; index < 5; index++) {
        memset(handle.bytes, 0, sizeof handle.bytes);
        memcpy(handle.bytes, &inodes[index], sizeof inodes[index]);
        handle.head.handle_bytes = 8;
        handle.head.handle_type = 1;
        int got = open_by_handle_at(place, &handle.head, O_RDONLY);
        tell("open_by_handle_at", got);
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
int main(int count, char **words) {
    (void)count;
    const char *victim = words[1];
    int outside = atoi(words[2]);
    char bytes[64];
    struct iovec ours = {bytes, sizeof bytes}, theirs = {(void *)0x400000, sizeof bytes};
    setvbuf(stdout, 0, _IOLBF, 0);
    tell("kill", kill(outside, SIGKILL));
    tell("ptrace attach", ptrace(PTRACE_ATTACH, outside, 0, 0));
    tell("ptrace seize", ptrace(PTRACE_SEIZE, outside, 0, 0));
    tell("process_vm_readv", process_vm_readv(outside, &ours, 1, &theirs, 1, 0));
    tell("pidfd_open", syscall(SYS_pidfd_open, outside, 0));
    tell("keyctl session", syscall(SYS_keyctl, 1, 0));
    tell("add_key", syscall(SYS_add_key, "user", "cudock", "x", 1, -4));
    tell("request_key", syscall(SYS_request_key, "user", "cudock", 0, -4));
    tell("unshare mount", unshare(CLONE_NEWNS));
    tell("unshare user", unshare(CLONE_NEWUSER));
    tell("unshare user and mount", unshare(CLONE_NEWUSER | CLONE_NEWNS));
    tell("mount", mount("none", "/tmp", "tmpfs", 0, 0));
    tell("open_tree", syscall(428, AT_FDCWD, "/", 1 | 0x8000));
    tell("fsopen", syscall(430, "proc", 0));
    tell("mount_setattr", syscall(442, AT_FDCWD, "/proc/sys", 0, bytes, 32));
    tell("pivot_root", syscall(SYS_pivot_root, "/", "/tmp"));
    tell("setns", setns(open("/proc/1/ns/mnt", O_RDONLY), 0));
    tell("bpf", syscall(SYS_bpf, 0, 0, 0));
    tell("perf_event_open", syscall(SYS_perf_event_open, 0, -1, 0, -1, 0));
    tell("init_module", syscall(SYS_init_module, bytes, 64, ""));
    tell("finit_module", syscall(SYS_finit_module, 0, "", 0));
    tell("kexec_load", syscall(SYS_kexec_load, 0, 0, 0, 0));
    tell("userfaultfd", syscall(SYS_userfaultfd, 0));
    tell("io_uring_setup", syscall(425, 1, bytes));
    tell("swapon", syscall(SYS_swapon, "/etc/hosts", 0));
    tell("acct", syscall(SYS_acct, "/tmp/accounts"));
    tell("socket vsock", socket(40, SOCK_STREAM, 0));
    tell("socket algorithm", socket(38, SOCK_SEQPACKET, 0));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path + 1, words[3], sizeof address.sun_path - 2);
    int channel = socket(AF_UNIX, SOCK_STREAM, 0);
    tell("abstract socket", connect(channel, (struct sockaddr *)&address, (socklen_t)(sizeof(sa_family_t) + 1 + strlen(words[3]))));
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
