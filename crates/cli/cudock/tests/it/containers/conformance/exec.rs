//! Cases of `cudock exec`. Options are those of exec.

use super::Want::{Ends, Fails, Holds, Says};
use super::{Case, check};
use crate::containers::machine::machine;

pub(super) const CASES: &[Case] = &[
    ("runc exec: runc exec", &[], "echo Hello from exec", Says("Hello from exec")),
    ("runc exec: runc exec [exit codes] 0", &[], "exit 0", Ends(0)),
    ("runc exec: runc exec [exit codes] 1", &[], "exit 1", Ends(1)),
    ("runc exec: runc exec [exit codes] 42", &[], "exit 42", Ends(42)),
    ("runc exec: runc exec [exit codes] of a signal", &[], "kill -9 $$", Ends(137)),
    ("runc exec: runc exec ls -la", &[], "ls -la /", Holds("proc")),
    ("runc exec: runc exec ls -la with --cwd", &["--workdir", "/bin"], "pwd", Says("/bin")),
    ("runc exec: runc exec --env", &["--env", "RUN_EXEC_ENV=true"], "echo $RUN_EXEC_ENV", Says("true")),
    ("runc exec: runc exec --user", &["--user", "1000:100"], "id -u; id -g", Says("1000\n100")),
    (
        "runc exec: runc exec --user vs /dev/null ownership",
        &["--user", "1000:100"],
        "stat -c %u:%g /dev/null",
        Says("0:0"),
    ),
    ("runc exec: runc exec --additional-gids", &["--user", "0"], "id -G", Says("0 44 105")),
    ("runc exec: runc exec --preserve-fds", &[], "ls /proc/self/fd | wc -l", Says("4")),
    ("runc exec: runc exec [execve error]", &[], "exec /no/such/program", Ends(127)),
    ("runc exec: runc exec check default home", &["--user", "1000"], "echo $HOME", Says("/home/ann")),
    (
        "runc cwd: runc exec --user with no access to cwd",
        &["--user", "1000", "--workdir", "/closed"],
        "pwd",
        Says("/closed"),
    ),
    (
        "youki exec: cwd that does not exist",
        &["--workdir", "/no/such/place"],
        "true",
        Fails(2, "/no/such/place"),
    ),
    ("runc env: env [runc exec -p]", &["-e", "KIND=exec"], "echo $KIND", Says("exec")),
    ("youki exec_env", &[], "echo $KIND", Says("container")),
    (
        "runc env: env HOME is set for runc exec -p with no process.env",
        &["-e", "HOME="],
        "echo $HOME",
        Says("/root"),
    ),
    (
        "runc capabilities: runc exec --cap",
        &[],
        "grep CapEff /proc/self/status",
        Says("CapEff:\t0000000000000021"),
    ),
    (
        "runc capabilities: runc exec --cap [ambient is set from spec]",
        &[],
        "grep -e CapInh -e CapAmb /proc/self/status | grep -vc 0000000000000000; true",
        Says("0"),
    ),
    (
        "runc cgroups: runc exec (cgroup v1+hybrid joins correct cgroup)",
        &[],
        "cmp /proc/1/cgroup /proc/self/cgroup && echo same",
        Says("same"),
    ),
    (
        "runc cgroups: runc exec (limits + cgrouppath + permission on the cgroup dir) succeeds",
        &[],
        "cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max",
        Says("77"),
    ),
    (
        "runc cpu_affinity: runc exec [default CPU affinity should reset to cgroup cpuset]",
        &[],
        "grep Cpus_allowed_list /proc/self/status",
        Says("Cpus_allowed_list:\t0"),
    ),
    (
        "runc rlimits: runc exec with RLIMIT_NOFILE(Smaller than system's hard value)",
        &[],
        "ulimit -Sn; ulimit -Hn",
        Says("64\n128"),
    ),
    (
        "runc run: runc run [joining existing container namespaces]",
        &[],
        "for n in pid ipc uts mnt net cgroup; do test $(readlink /proc/1/ns/$n) = $(readlink /proc/self/ns/$n) || echo other $n; done; echo all",
        Says("all"),
    ),
    ("runc tty: runc exec [stdin not a tty]", &[], "tty; true", Says("not a tty")),
    ("runc tty: runc exec [tty ptsname]", &["-t"], "tty", Says("/dev/pts/0")),
    ("runc tty: runc exec [tty owner]", &["-t"], "stat -c %u /dev/pts/0", Says("0")),
    (
        "runc tty: runc exec [tty owner] ({u,g}id != 0)",
        &["-t", "--user", "1000"],
        "stat -c %u /dev/pts/0; echo ok > /dev/stdout",
        Says("1000\nok"),
    ),
    ("runc umask: umask of exec", &[], "umask", Says("0022")),
    (
        "runtime-tools misc_props: exec",
        &[],
        "grep -e NoNewPrivs -e Seccomp: /proc/self/status",
        Says("NoNewPrivs:\t1\nSeccomp:\t2"),
    ),
];

#[test]
fn what_the_suites_ask_of_a_process_that_joins_holds() {
    let Some(machine) = machine() else { return };
    let closed = machine.root().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let options = [
        "--cap-drop",
        "ALL",
        "--cap-add",
        "CHOWN",
        "--cap-add",
        "KILL",
        "--group-add",
        "44",
        "--group-add",
        "105",
        "--pids-limit",
        "77",
        "--cpuset-cpus",
        "0",
        "--ulimit",
        "nofile=64:128",
        "-e",
        "KIND=container",
    ];
    machine.start("joined", &options, "trap 'exit 0' TERM; while true; do sleep 0.2; done");
    check(CASES, |options, script| {
        machine.call(&[&["exec"], options, &["joined", "sh", "-c", script]].concat())
    });
}
