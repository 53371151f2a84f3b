//! Our own executable, from inside a container.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use cudock_base::Digest;

use super::run;
use crate::containers::machine::{Machine, machine, run_arguments};
use crate::containers::programs::install;
use crate::support::shown;

fn digest() -> String {
    Digest::sha256_of(&fs::read(env!("CARGO_BIN_EXE_cudock")).unwrap()).to_string()
}

/// Runs in a process that has become `/proc/self/exe`: tries to write to it while it runs, and from a child after it.
const OVERWRITE: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void attempt(const char *path, const char *when) {
    int modes[] = {O_WRONLY, O_RDWR, O_WRONLY | O_TRUNC, O_WRONLY | O_APPEND};
    for (int index = 0; index < 4; index++) {
        int got = open(path, modes[index]);
        if (got >= 0) { printf("OPENED %s\n", when); close(got); }
        else printf("refused %s: %s\n", when, strerror(errno));
    }
    if (truncate(path, 0) == 0) printf("CUT %s\n", when);
    if (chmod(path, 0777) == 0) printf("CHANGED %s\n", when);
}
#ifndef AFTER
__attribute__((constructor)) static void begin(void) {
    char text[4096], path[64];
    ssize_t size = readlink("/proc/self/exe", text, sizeof text - 1);
    text[size > 0 ? size : 0] = 0;
    if (!strcmp(text, "/bin/busybox")) return;
    printf("reached %s\n", text);
    int held = open("/proc/self/exe", O_RDONLY);
    attempt("/proc/self/exe", "while it runs");
    fflush(stdout);
    if (fork() == 0) {
        unsetenv("LD_PRELOAD");
        snprintf(path, sizeof path, "exec /bin/after /proc/self/fd/%d > /after", held);
        execl("/bin/sh", "sh", "-c", path, (char *)0);
        _exit(1);
    }
    _exit(0);
}
#else
int main(int argc, char **argv) {
    (void)argc;
    sleep(1);
    attempt(argv[1], "after it");
    return 0;
}
#endif
"#;

/// Copies the libraries that `cudock` needs into the root. `None` where it is linked otherwise.
fn bring_libraries(machine: &Machine) -> Option<()> {
    let ldd = cudock_testkit::require_program("ldd")?;
    let listed = Command::new(ldd).arg(env!("CARGO_BIN_EXE_cudock")).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let paths: Vec<&str> = listed.split_whitespace().filter(|word| word.starts_with('/')).collect();
    if paths.is_empty() {
        cudock_testkit::missing(
            "dynamic-linking",
            "this cudock needs no libraries, so none of the image's can be loaded into it",
        );
        return None;
    }
    for path in paths {
        let inside = machine.root().join(path.trim_start_matches('/'));
        fs::create_dir_all(inside.parent().unwrap()).unwrap();
        fs::copy(path, inside).unwrap();
    }
    Some(())
}

fn library(machine: &Machine) -> Option<()> {
    let source = machine.write("overwrite.c", OVERWRITE);
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(machine.root().join("overwrite.so"))
        .arg(source)
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        cudock_testkit::missing("cc", "there is no C compiler that makes libraries");
        return None;
    }
    Some(())
}

#[test]
fn our_executable_run_inside_cannot_be_written_to() {
    // CVE-2019-5736: the entry point, or a script's interpreter, is /proc/self/exe, with a library of the image's.
    let Some(machine) = machine() else { return };
    let Some(()) = bring_libraries(&machine) else { return };
    let Some(()) = library(&machine) else { return };
    let Some(_) = install(&machine, "after", &format!("#define AFTER\n{OVERWRITE}")) else { return };
    let before = digest();
    let script = machine.write("root/bin/script", "#!/proc/self/exe\n");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    machine.start("held", &["-e", "LD_PRELOAD=/overwrite.so"], "sleep 1000");
    for program in ["/proc/self/exe", "/bin/script"] {
        let arguments = run_arguments(&["-e", "LD_PRELOAD=/overwrite.so", "--rm"], &[program]);
        let entry = run::ended(program, machine.command(&arguments));
        let arguments = ["exec", "-e", "LD_PRELOAD=/overwrite.so", "held", program];
        let exec = run::ended(program, machine.command(&arguments));
        let after = "until grep -q CHANGED /after || [ $(grep -c refused /after) = 4 ]; do sleep 0.1; done; cat /after; rm /after";
        let later = run::ended(
            program,
            machine.command(&["exec", "-e", "LD_PRELOAD=", "held", "/bin/sh", "-c", after]),
        );
        for (how, when, output) in [
            ("entry point", "while it runs", entry),
            ("exec", "while it runs", exec),
            ("exec", "after it", later),
        ] {
            let text = shown(&output);
            assert!(text.contains(&format!("refused {when}")), "{how} {program}: {text}");
            for word in ["OPENED", "CUT", "CHANGED"] {
                assert!(!text.contains(word), "{how} {program}: {text}");
            }
        }
        assert_eq!(digest(), before, "{program}: our executable was changed");
    }
}

/// Waits for processes that join, keeps their executable open, and tries to write to it until long after.
const WATCH: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static volatile sig_atomic_t over;
static void end(int signal) { (void)signal; over = 1; }
int main(void) {
    char path[64], text[4096];
    int last = getpid();
    signal(SIGTERM, end);
    setvbuf(stdout, 0, _IOLBF, 0);
    puts("watching");
    while (!over) for (int pid = last + 1; pid < last + 6; pid++) {
        snprintf(path, sizeof path, "/proc/%d", pid);
        if (access(path, F_OK)) continue;
        snprintf(path, sizeof path, "/proc/%d/exe", pid);
        while (!over) {
            int writing = open(path, O_WRONLY);
            if (writing >= 0) { puts("WROTE"); close(writing); }
            int held = open(path, O_PATH);
            if (held < 0) { if (errno == EACCES) continue; break; }
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", held);
            ssize_t size = readlink(link, text, sizeof text - 1);
            text[size > 0 ? size : 0] = 0;
            if (strstr(text, "busybox")) { close(held); break; }
            printf("holds %s\n", text);
            for (int times = 0; times < 2000; times++) {
                writing = open(link, O_WRONLY);
                if (writing >= 0) { puts("WROTE"); close(writing); break; }
            }
            close(held);
        }
        last = pid;
    }
    puts("watched");
    return 0;
}
"#;

#[test]
fn a_process_that_joins_leaves_no_way_to_our_executable() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "stalk", WATCH) else { return };
    let before = digest();
    machine.start("watcher", &[], "exec stalk");
    machine.until_logged("watcher", "watching");
    for _ in 0..40 {
        machine.good(&["exec", "watcher", "true"]);
    }
    machine.good(&["stop", "watcher"]);
    let log = machine.logs("watcher");
    assert!(log.contains("watched") && !log.contains("WROTE"), "{log}");
    assert_eq!(digest(), before);
    assert!(Path::new(env!("CARGO_BIN_EXE_cudock")).is_file());
}
