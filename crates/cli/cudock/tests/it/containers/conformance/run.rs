//! Cases of `cudock run`.

use super::Want::{Ends, Fails, Holds, Says};
use super::{Case, check};
use crate::containers::machine::machine;

const READ_ONLY: &str = "Read-only file system";
const FORBIDDEN: &str = "Operation not permitted";

pub(super) const CASES: &[Case] = &[
    // Capabilities.
    (
        "runc capabilities: runc run no capability",
        &["--cap-drop", "ALL"],
        "grep CapEff /proc/self/status",
        Says("CapEff:\t0000000000000000"),
    ),
    (
        "runc capabilities: runc run with unknown capability",
        &["--cap-add", "CAP_UNKNOWN"],
        "true",
        Fails(2, "CAP_UNKNOWN"),
    ),
    (
        "runc capabilities: runc run with new privileges",
        &["--security-opt", "no-new-privileges=false", "--security-opt", "seccomp=unconfined"],
        "grep NoNewPrivs /proc/self/status",
        Says("NoNewPrivs:\t0"),
    ),
    (
        "runc capabilities: runc run with some capabilities",
        &["--cap-drop", "ALL", "--cap-add", "CHOWN", "--cap-add", "KILL"],
        "grep CapEff /proc/self/status",
        Says("CapEff:\t0000000000000021"),
    ),
    (
        "runc capabilities: runc run [ambient caps not set in inheritable result in a warning]",
        &[],
        "grep CapAmb /proc/self/status",
        Says("CapAmb:\t0000000000000000"),
    ),
    (
        "runtime-tools process_capabilities",
        &[],
        "grep CapBnd /proc/self/status",
        Says("CapBnd:\t00000000a80425fb"),
    ),
    (
        "runtime-tools process_capabilities_fail",
        &["--cap-add", "CAP_TEST_CAP"],
        "true",
        Fails(2, "CAP_TEST_CAP"),
    ),
    (
        "youki process_capabilities_bounding",
        &["--cap-drop", "ALL", "--cap-add", "CHOWN"],
        "grep CapBnd /proc/self/status",
        Says("CapBnd:\t0000000000000001"),
    ),
    (
        "youki process_capabilities",
        &["--user", "1000"],
        "grep CapEff /proc/self/status",
        Says("CapEff:\t0000000000000000"),
    ),
    (
        "runc start_hello: runc run as user with no exec bit but CAP_DAC_OVERRIDE set",
        &[],
        "cp /bin/busybox /tmp/b; chmod 644 /tmp/b; /tmp/b true; echo $?",
        Says("126"),
    ),
    // Control groups.
    (
        "runc cgroups: runc run (pids.limit=-1 means unlimited)",
        &["--pids-limit=-1"],
        "cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max",
        Says("max"),
    ),
    (
        "runtime-tools linux_cgroups_pids",
        &["--pids-limit", "101"],
        "cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max",
        Says("101"),
    ),
    (
        "runtime-tools linux_cgroups_memory",
        &["--memory", "64m"],
        "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max",
        Says("67108864"),
    ),
    (
        "runtime-tools linux_cgroups_cpus",
        &["--cpus", "0.5"],
        "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cat /sys/fs/cgroup/cpu.max",
        Holds("50000"),
    ),
    (
        "youki cgroups: cpu",
        &["--cpuset-cpus", "0"],
        "cat /sys/fs/cgroup/cpuset/cpuset.cpus 2>/dev/null || cat /sys/fs/cgroup/cpuset.cpus",
        Says("0"),
    ),
    (
        "runc cpu_affinity: runc run [CPU affinity should reset to cgroup cpuset]",
        &["--cpuset-cpus", "0"],
        "grep Cpus_allowed_list /proc/self/status",
        Says("Cpus_allowed_list:\t0"),
    ),
    (
        "runtime-tools linux_cgroups_devices",
        &[],
        "mknod /tmp/disk b 8 0 && cat /tmp/disk 2>&1 | head -1",
        Holds(FORBIDDEN),
    ),
    (
        "runc dev: runc run/update [device cgroup deny]",
        &[],
        "mknod /tmp/kmsg c 1 11 && head -c 1 /tmp/kmsg 2>&1 | head -1",
        Holds(FORBIDDEN),
    ),
    (
        "runc mounts: runc run [ro /sys/fs/cgroup mounts]",
        &[],
        "touch /sys/fs/cgroup/new 2>&1; true",
        Holds(READ_ONLY),
    ),
    (
        "runc mounts: runc run [ro /sys/fs/cgroup mounts + cgroupns]",
        &[],
        "d=/sys/fs/cgroup/memory; test -d $d || d=/sys/fs/cgroup; mkdir $d/new 2>&1; true",
        Holds(READ_ONLY),
    ),
    // Devices.
    ("runc dev: runc run [redundant default /dev/tty]", &[], "test -c /dev/tty && echo there", Says("there")),
    ("runc dev: runc run [redundant default /dev/ptmx]", &[], "readlink /dev/ptmx", Says("pts/ptmx")),
    (
        "runc dev: runc run [device cgroup allow rw char device]",
        &["--device", "/dev/kmsg"],
        "test -c /dev/kmsg && echo there",
        Says("there"),
    ),
    ("runtime-tools linux_devices", &["--device", "/nope"], "true", Fails(2, "/nope")),
    (
        "runtime-tools default: default devices",
        &[],
        "for d in null zero full random urandom tty; do test -c /dev/$d || echo no $d; done; echo all",
        Says("all"),
    ),
    (
        "runtime-tools default: default symlinks",
        &[],
        "readlink /dev/fd; readlink /dev/stdin; readlink /dev/stdout; readlink /dev/stderr",
        Says("/proc/self/fd\n/proc/self/fd/0\n/proc/self/fd/1\n/proc/self/fd/2"),
    ),
    ("youki devices", &[], "stat -c %a /dev/null", Says("666")),
    (
        "runc dev: runc run [device cgroup allow rm block device]",
        &[],
        "echo x > /dev/null && head -c 3 /dev/zero | wc -c",
        Says("3"),
    ),
    // Directories to start in.
    (
        "runc cwd: runc create sets up user before chdir to cwd if needed",
        &["--workdir", "/home/ann", "--user", "ann"],
        "pwd",
        Says("/home/ann"),
    ),
    (
        "runc cwd: runc create can chdir if runc has access",
        &["--workdir", "/new/deep"],
        "pwd",
        Says("/new/deep"),
    ),
    ("runtime-tools process: cwd", &["--workdir", "/etc/passwd"], "true", Fails(2, "/etc/passwd")),
    // Environment.
    ("runc env: non-empty HOME env is used", &["-e", "HOME=/elsewhere"], "echo $HOME", Says("/elsewhere")),
    ("runc env: empty HOME env var is overridden", &["-e", "HOME="], "echo $HOME", Says("/root")),
    (
        "runc env: empty HOME env var is overridden with multiple overrides",
        &["-e", "HOME=/a", "-e", "HOME="],
        "echo $HOME",
        Says("/root"),
    ),
    (
        "runc env: env var HOME is set only once",
        &["-e", "HOME=/a", "-e", "HOME=/b"],
        "env | grep -c ^HOME=",
        Says("1"),
    ),
    (
        "runc env: env var override is set only once",
        &["-e", "ONE=1", "-e", "ONE=2"],
        "env | grep -c ^ONE=",
        Says("1"),
    ),
    ("runc env: env var override", &["-e", "ONE=1", "-e", "ONE=2"], "echo $ONE", Says("2")),
    (
        "runc env: env var with new-line is honored",
        &["-e", "TWO=first\nsecond"],
        "echo \"$TWO\"",
        Says("first\nsecond"),
    ),
    ("runc run: runc run check default home", &["--user", "1000"], "echo $HOME", Says("/home/ann")),
    // Users.
    ("runtime-tools process_user", &["--user", "1000:44"], "id -u; id -g", Says("1000\n44")),
    ("youki process_user", &["--group-add", "44", "--group-add", "105"], "id -G", Says("0 44 105")),
    (
        "runc start_hello: runc run ({u,g}id != 0)",
        &["--user", "1000:100"],
        "echo Hello; id -u",
        Says("Hello\n1000"),
    ),
    ("runc umask: umask", &[], "umask", Says("0022")),
    (
        "runtime-tools process: user of an image without it",
        &["--user", "nobody-here"],
        "true",
        Fails(2, "nobody-here"),
    ),
    // Names and namespaces.
    ("runc run: runc run [hostname domainname]", &["--hostname", "inner"], "hostname", Says("inner")),
    (
        "runtime-tools hostname",
        &["--hostname", "other.example"],
        "cat /proc/sys/kernel/hostname",
        Says("other.example"),
    ),
    ("youki hostname", &["--hostname", "a b"], "true", Fails(2, "host name")),
    ("runtime-tools linux_ns_nopath: pid", &[], "echo $$; ls -d /proc/[0-9]* | wc -l", Holds("1\n")),
    ("youki linux_ns_itype", &[], "readlink /proc/self/ns/pid | cut -d: -f1", Says("pid")),
    ("runtime-tools linux_ns_nopath: network", &[], "ls /sys/class/net", Says("lo")),
    // Masked and read-only paths.
    ("runc mask: mask paths [file]", &[], "wc -c < /proc/keys", Says("0")),
    ("runc mask: mask paths [directory]", &[], "ls /sys/firmware | wc -l", Says("0")),
    (
        "runc mask: mask paths [directory with read-only rootfs]",
        &["--read-only"],
        "ls /sys/firmware | wc -l",
        Says("0"),
    ),
    ("runtime-tools linux_masked_paths", &[], "cat /proc/kcore 2>/dev/null | wc -c", Says("0")),
    ("youki linux_masked_paths", &[], "wc -c < /proc/timer_list", Says("0")),
    (
        "runtime-tools linux_readonly_paths",
        &[],
        "(echo 1 > /proc/sys/vm/drop_caches) 2>&1; true",
        Holds(READ_ONLY),
    ),
    ("youki readonly_paths", &[], "(echo inner > /proc/sys/kernel/hostname) 2>&1; true", Holds(READ_ONLY)),
    (
        "runc no_pivot: runc run --no-pivot must not expose bare /proc",
        &[],
        "(echo x > /proc/sys/kernel/core_pattern) 2>&1; true",
        Holds(READ_ONLY),
    ),
    // Mounts.
    ("runc mounts: runc run [bind mount]", &["-v", "given:/given"], "cat /given/mark", Says("given")),
    (
        "runc mounts_recursive: runc run [rbind,rro mount is recursively read-only]",
        &["-v", "given:/given:ro"],
        "touch /given/new 2>&1; true",
        Holds(READ_ONLY),
    ),
    (
        "runc mounts: runc run [tmpfs mount mode=1777 default]",
        &["--tmpfs", "/scratch"],
        "stat -c %a /scratch",
        Says("1777"),
    ),
    (
        "runc mounts: runc run [tmpfs mount explicit mode=]",
        &["--tmpfs", "/scratch:mode=0750"],
        "stat -c %a /scratch",
        Says("750"),
    ),
    (
        "runc run: runc run with tmpfs",
        &["--tmpfs", "/scratch:size=1m"],
        "df -k /scratch | tail -1 | awk '{print $2}'",
        Says("1024"),
    ),
    ("runc run: runc run with tmpfs perms", &["--tmpfs", "/tmp:mode=0700"], "stat -c %a /tmp", Says("700")),
    (
        "runc mounts: runc run [tmpfs mount with absolute symlink]",
        &["--tmpfs", "/linked"],
        "grep -c ' /real/place tmpfs' /proc/mounts",
        Says("1"),
    ),
    (
        "runc mounts: runc run [bind mount through a trailing dangling symlink]",
        &["-v", "given:/dangling"],
        "cat /dangling/mark",
        Says("given"),
    ),
    (
        "runc mounts: runc run [mount order, container bind-mount source]",
        &["-v", "given:/given", "--tmpfs", "/given/inner"],
        "cat /given/mark; stat -c %a /given/inner",
        Says("given\n1777"),
    ),
    (
        "runc mounts: runc run [setgid / + mkdirall]",
        &["-v", "given:/a/b/c"],
        "stat -c %a /a /a/b",
        Says("755\n755"),
    ),
    (
        "runtime-tools mounts",
        &[],
        "grep '^proc /proc proc' /proc/mounts | grep -c nosuid,nodev,noexec",
        Says("1"),
    ),
    (
        "runtime-tools default: default filesystems",
        &[],
        "for m in 'proc /proc' 'sysfs /sys' 'devpts /dev/pts' 'shm /dev/shm' 'mqueue /dev/mqueue'; do grep -q \"^$m \" /proc/mounts || echo no $m; done; echo all",
        Says("all"),
    ),
    ("runc mounts: runc run [ro tmpfs mount]", &[], "touch /sys/new 2>&1; true", Holds(READ_ONLY)),
    ("runtime-tools root_readonly_true", &["--read-only"], "touch /new 2>&1; true", Holds(READ_ONLY)),
    (
        "youki root_readonly_true",
        &["--read-only", "--tmpfs", "/tmp"],
        "touch /tmp/new && echo made",
        Says("made"),
    ),
    ("runtime-tools root_readonly_true: false", &[], "touch /new && echo made", Says("made")),
    ("runtime-tools linux_rootfs_propagation", &[], "grep -c shared: /proc/self/mountinfo; true", Says("0")),
    (
        "youki mounts_recursive",
        &["-v", "given:/given:ro"],
        "grep ' /given ' /proc/mounts | grep -c ' ro,'",
        Says("1"),
    ),
    // The program.
    ("runc run: runc run", &[], "echo Hello World", Says("Hello World")),
    ("runc run: runc run [execve error]", &[], "exec /bin/no-such-program", Ends(127)),
    ("runc run: runc run [/proc/self/exe clone]", &[], "readlink /proc/1/exe", Says("/bin/busybox")),
    ("runtime-tools process", &[], "tr '\\0' '|' < /proc/1/cmdline | cut -d'|' -f1,2", Says("sh|-c")),
    (
        "runc create: runc create[detect fd leak as comprehensively as possible]",
        &[],
        "ls /proc/self/fd | wc -l",
        Says("4"),
    ),
    // The shell holds the ends of the pipe until both commands run.
    ("youki fd_control", &[], "(sleep 1; ls -l /proc/1/fd) | grep -c -e '->'", Says("3")),
    ("runtime-tools misc_props", &[], "grep NoNewPrivs /proc/self/status", Says("NoNewPrivs:\t1")),
    // Resource limits.
    (
        "runc rlimits: runc run with RLIMIT_NOFILE(Smaller than system's hard value)",
        &["--ulimit", "nofile=60:61"],
        "ulimit -Sn; ulimit -Hn",
        Says("60\n61"),
    ),
    (
        "runc rlimits: runc run with RLIMIT_NOFILE(The same as system's hard value)",
        &["--ulimit", "core=0:0"],
        "ulimit -Hc",
        Says("0"),
    ),
    (
        "runtime-tools process_rlimits",
        &["--ulimit", "nofile=64", "--ulimit", "nproc=500:600"],
        "ulimit -Hn",
        Says("64"),
    ),
    ("runtime-tools process_rlimits_fail", &["--ulimit", "nosuch=1"], "true", Fails(2, "nosuch")),
    ("youki process_rlimits", &["--ulimit", "nofile=200:100"], "true", Fails(2, "soft limit")),
    // Terminals.
    ("runc tty: runc run [tty ptsname]", &["-t"], "tty", Says("/dev/pts/0")),
    ("runc tty: runc run [tty owner]", &["-t"], "stat -c %u /dev/pts/0", Says("0")),
    (
        "runc tty: runc run [tty owner] ({u,g}id != 0)",
        &["-t", "--user", "1000"],
        "stat -c %u /dev/pts/0; echo ok > /dev/stdout",
        Says("1000\nok"),
    ),
    ("runc tty: runc run [terminal=false]", &[], "tty; true", Says("not a tty")),
    (
        "runc tty: runc run [stdin not a tty]",
        &["--user", "1000"],
        "echo out > /dev/stdout; echo err > /dev/stderr",
        Says("out"),
    ),
    // System calls.
    (
        "runc seccomp: runc run [seccomp] (SCMP_ACT_ERRNO default)",
        &["--security-opt", "seccomp=errno.json"],
        "mkdir /new 2>&1; true",
        Holds(FORBIDDEN),
    ),
    (
        "runc seccomp: runc run [seccomp] (SCMP_ACT_ERRNO explicit errno)",
        &["--security-opt", "seccomp=enxio.json"],
        "mkdir /new 2>&1; true",
        Holds("No such device or address"),
    ),
    (
        "runc seccomp: runc run [seccomp] (SCMP_ACT_KILL)",
        &["--security-opt", "seccomp=kill.json"],
        "mkdir /new; echo $?",
        Says("159"),
    ),
    ("runtime-tools linux_seccomp", &[], "grep Seccomp: /proc/self/status", Says("Seccomp:\t2")),
    (
        "youki seccomp",
        &["--security-opt", "seccomp=unconfined"],
        "grep Seccomp: /proc/self/status",
        Says("Seccomp:\t0"),
    ),
    (
        "runc start_hello: runc run [redundant seccomp rules]",
        &["--security-opt", "seccomp=redundant.json"],
        "echo Hello",
        Says("Hello"),
    ),
];

#[test]
fn what_the_suites_ask_of_a_new_container_holds() {
    let Some(machine) = machine() else { return };
    let root = machine.root();
    machine.write("given/mark", "given\n");
    std::fs::create_dir_all(root.join("home/ann")).unwrap();
    std::fs::create_dir_all(root.join("real/place")).unwrap();
    std::os::unix::fs::chown(root.join("home/ann"), Some(1000), Some(100)).unwrap();
    std::os::unix::fs::symlink("/real/place", root.join("linked")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", root.join("dangling")).unwrap();
    let names = r#"["mkdir", "mkdirat"]"#;
    let profile = |rule: &str| format!(r#"{{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{rule}]}}"#);
    let rule = |action: &str| format!(r#"{{"names": {names}, "action": "{action}"}}"#);
    machine.write("errno.json", profile(&rule("SCMP_ACT_ERRNO")));
    machine.write("kill.json", profile(&rule("SCMP_ACT_KILL")));
    machine.write(
        "enxio.json",
        profile(&format!(r#"{{"names": {names}, "action": "SCMP_ACT_ERRNO", "errnoRet": 6}}"#)),
    );
    machine.write("redundant.json", profile(&[rule("SCMP_ACT_ALLOW"), rule("SCMP_ACT_ALLOW")].join(",")));
    check(CASES, |options, script| machine.sh(options, script));
}
