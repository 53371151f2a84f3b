//! Programs for containers that busybox does not have, compiled where there is a compiler.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use super::machine::Machine;

/// Prints its effective user.
pub(super) const WHO: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(void) { printf("%d %d\n", (int)getuid(), (int)geteuid()); return 0; }
"#;

/// Makes one privileged call, by name, and prints the result.
pub(super) const CALL: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    const char *call = argc > 1 ? argv[1] : "";
    long answer = -1;
    errno = 0;
    if (!strcmp(call, "mount")) answer = mount("none", "/tmp", "tmpfs", 0, 0);
    else if (!strcmp(call, "unshare")) answer = unshare(CLONE_NEWUSER);
    else if (!strcmp(call, "clone")) {
        answer = syscall(SYS_clone, CLONE_NEWUSER | 17, 0, 0, 0, 0);
        if (answer == 0) _exit(0);
    }
    else if (!strcmp(call, "keyctl")) answer = syscall(SYS_keyctl, 0, -3, 1);
    else if (!strcmp(call, "bpf")) answer = syscall(SYS_bpf, 0, 0, 0) ;
    else if (!strcmp(call, "io_uring")) answer = syscall(SYS_io_uring_setup, 1, 0);
    else if (!strcmp(call, "userfaultfd")) answer = syscall(SYS_userfaultfd, 0);
    else if (!strcmp(call, "vsock")) answer = socket(40, SOCK_STREAM, 0);
    else if (!strcmp(call, "getpid")) answer = getpid();
    printf("%s: %s\n", call, answer < 0 ? strerror(errno) : "done");
    return 0;
}
"#;

/// Sends back what comes to a port.
pub(super) const ECHO: &str = r"
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
int main(int argc, char **argv) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(argc > 1 ? atoi(argv[1]) : 0)}, there;
    int heard = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(heard, (struct sockaddr *)&here, sizeof here)) return 1;
    for (;;) {
        char bytes[2048];
        socklen_t size = sizeof there;
        ssize_t came = recvfrom(heard, bytes, sizeof bytes, 0, (struct sockaddr *)&there, &size);
        if (came >= 0) sendto(heard, bytes, came, 0, (struct sockaddr *)&there, size);
    }
}
";

/// Puts a program into the machine's directory; `None`, and the reason printed, where it cannot be compiled.
pub(super) fn install(machine: &Machine, name: &str, source: &str) -> Option<PathBuf> {
    let text = machine.write(&format!("{name}.c"), source);
    let program = machine.root().join("bin").join(name);
    let made = Command::new("cc").arg("-static").arg("-o").arg(&program).arg(text).output();
    if !made.is_ok_and(|output| output.status.success()) {
        cudock_testkit::missing("cc", "there is no C compiler that makes static programs");
        return None;
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Some(program)
}
