//! Rights of a container: devices, capabilities, system calls.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use super::machine::{machine, run_arguments};
use super::programs::{CALL, WHO, install};
use crate::support::{code, shown};

/// Docker's fourteen.
const DEFAULT: &str = "00000000a80425fb";
const NONE: &str = "0000000000000000";

#[test]
fn only_the_usual_devices_can_be_opened() {
    let Some(machine) = machine() else { return };
    let script =
        "echo x > /dev/null; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; ls /dev | xargs";
    let stdout = machine.says(&[], script);
    assert!(stdout.starts_with("3\n3\n"), "{stdout}");
    for gpu in ["nvidia", "dri", "sda", "vda", "mem", "kmsg"] {
        assert!(!stdout.contains(gpu), "{stdout}");
    }
    for node in ["c 195 0", "c 195 255", "c 1 1", "c 10 200", "b 7 0"] {
        let script = format!(
            "mknod /tmp/node {node} && dd if=/tmp/node of=/dev/null count=1; dd if=/dev/null of=/tmp/node count=1"
        );
        let output = machine.sh(&[], &script);
        assert_ne!(code(&output), 0, "{node}: {}", shown(&output));
        assert!(shown(&output).contains("Operation not permitted"), "{node}: {}", shown(&output));
    }
}

#[test]
fn a_device_that_was_given_can_be_opened_and_no_other() {
    let Some(machine) = machine() else { return };
    let openable = |path: &&str| {
        let device = fs::metadata(path).is_ok_and(|about| about.file_type().is_char_device());
        device && fs::File::open(path).is_ok()
    };
    let Some(path) =
        ["/dev/net/tun", "/dev/loop-control", "/dev/fuse", "/dev/hpet"].into_iter().find(openable)
    else {
        cudock_testkit::missing("devices", "this machine has no device to give");
        return;
    };
    let numbers = fs::metadata(path).unwrap().rdev();
    let (major, minor) = (rustix::fs::major(numbers), rustix::fs::minor(numbers));
    let stdout =
        machine.says(&["--device", path], &format!("stat -c '%t %T' {path}; exec 3< {path} && echo opened"));
    assert_eq!(stdout, format!("{major:x} {minor:x}\nopened\n"));
    let output =
        machine.sh(&[], &format!("mknod /tmp/node c {major} {minor}; exec 3< /tmp/node && echo opened"));
    assert!(!shown(&output).contains("opened"), "{}", shown(&output));
    let message = machine.bad(2, &run_arguments(&["--rm", "--device", "/etc/passwd"], &["true"]));
    assert!(message.contains("/etc/passwd is not a device node"), "{message}");
}

#[test]
fn capabilities_are_the_default_ones_with_those_of_the_options() {
    let Some(machine) = machine() else { return };
    let with = |options: &[&str]| {
        let text = machine.says(options, "grep ^Cap /proc/self/status");
        let value =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        assert_eq!((value("CapInh:").as_str(), value("CapAmb:").as_str()), (NONE, NONE));
        assert_eq!(value("CapEff:"), value("CapPrm:"));
        (value("CapEff:"), value("CapBnd:"))
    };
    let of = |bits: u64| format!("{bits:016x}");
    let default = u64::from_str_radix(DEFAULT, 16).unwrap();
    let (admin, bind, net_raw) = (1 << 21, 1 << 10, 1 << 13);
    assert_eq!(with(&[]), (DEFAULT.to_owned(), DEFAULT.to_owned()));
    assert_eq!(with(&["--cap-drop", "ALL"]), (NONE.to_owned(), NONE.to_owned()));
    assert_eq!(with(&["--cap-drop", "ALL", "--cap-add", "NET_BIND_SERVICE"]), (of(bind), of(bind)));
    assert_eq!(with(&["--cap-drop", "all", "--cap-add", "cap_net_bind_service"]), (of(bind), of(bind)));
    assert_eq!(with(&["--cap-add", "SYS_ADMIN"]), (of(default | admin), of(default | admin)));
    assert_eq!(with(&["--cap-drop", "NET_RAW"]), (of(default & !net_raw), of(default & !net_raw)));
    assert_eq!(with(&["--user", "ann"]), (NONE.to_owned(), DEFAULT.to_owned()), "root's rights are for root");
}

#[test]
fn capabilities_hold_for_exec_too() {
    let Some(machine) = machine() else { return };
    machine.start("bare", &["--cap-drop", "ALL"], "sleep 1000");
    let stdout =
        machine.good(&["exec", "bare", "grep", "-E", "^(Cap|NoNewPrivs|Seccomp:)", "/proc/self/status"]);
    assert_eq!(stdout.matches(NONE).count(), 5, "{stdout}");
    assert!(stdout.contains("NoNewPrivs:\t1") && stdout.contains("Seccomp:\t2"), "{stdout}");
}

fn set_user_id(program: &Path) {
    fs::set_permissions(program, fs::Permissions::from_mode(0o4755)).unwrap();
}

#[test]
fn a_set_user_id_program_gains_nothing() {
    let Some(machine) = machine() else { return };
    let Some(program) = install(&machine, "effective", WHO) else { return };
    set_user_id(&program);
    assert_eq!(machine.says(&["--user", "ann"], "effective"), "1000 1000\n");
    machine.start("held", &[], "sleep 1000");
    assert_eq!(machine.good(&["exec", "--user", "ann", "held", "effective"]), "1000 1000\n");
    let free = [
        "--user",
        "ann",
        "--security-opt",
        "no-new-privileges=false",
        "--security-opt",
        "seccomp=unconfined",
    ];
    let gains = machine.says(&free, "effective");
    assert_eq!(gains, "1000 0\n", "with the option it does, so the program itself works");
}

#[test]
fn system_calls_that_rule_the_machine_are_refused() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "call", CALL) else { return };
    let all = ["mount", "unshare", "clone", "keyctl", "bpf", "io_uring", "userfaultfd", "vsock", "getpid"];
    let script = all.map(|call| format!("call {call}")).join("; ");
    let stdout = machine.says(&[], &script);
    for call in all {
        let answer = stdout.lines().find_map(|line| line.strip_prefix(&format!("{call}: "))).unwrap();
        if call == "getpid" {
            assert_eq!(answer, "done");
        } else {
            assert!(
                ["Operation not permitted", "Function not implemented"].contains(&answer),
                "{call}: {answer}"
            );
        }
    }
    machine.start("held", &[], "sleep 1000");
    let stdout = machine.good(&["exec", "held", "sh", "-c", &script]);
    assert!(
        stdout.contains("keyctl: Operation not permitted") && stdout.contains("unshare: Operation not"),
        "{stdout}"
    );
}

#[test]
fn without_a_filter_they_are_the_kernels_to_judge() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "call", CALL) else { return };
    let options = ["--security-opt", "seccomp=unconfined"];
    let stdout = machine.says(&options, "call keyctl; grep ^Seccomp: /proc/self/status");
    assert_eq!(stdout, "keyctl: done\nSeccomp:\t0\n");
    let stdout =
        machine.says(&["--security-opt", "seccomp=unconfined", "--cap-add", "SYS_ADMIN"], "call mount");
    assert_eq!(stdout, "mount: done\n");
    let stdout = machine.says(&["--cap-add", "SYS_ADMIN"], "call mount; call keyctl");
    assert_eq!(
        stdout, "mount: done\nkeyctl: Operation not permitted\n",
        "a capability brings its own calls only"
    );
}

#[test]
fn a_profile_of_ones_own_is_followed_and_a_bad_one_is_a_bad_call() {
    let Some(machine) = machine() else { return };
    let profile = r#"{"defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95}]}"#;
    let file = machine.write("profile.json", profile);
    let option = format!("seccomp={}", file.display());
    let output = machine.sh(&["--security-opt", &option], "mkdir /tmp/new");
    assert!(shown(&output).contains("not supported"), "{}", shown(&output));
    let file = machine.write("bad.json", "{\"defaultAction\": \"SCMP_ACT_SHRUG\"}");
    let option = format!("seccomp={}", file.display());
    let message = machine.bad(2, &run_arguments(&["--security-opt", &option], &["true"]));
    assert!(message.contains("SCMP_ACT_SHRUG"), "{message}");
}

#[test]
fn what_describes_the_machine_is_hidden_or_read_only() {
    let Some(machine) = machine() else { return };
    let script = "cat /proc/keys /proc/timer_list | wc -c; ls /sys/firmware | wc -l
for file in /proc/sys/kernel/hostname /proc/sysrq-trigger /sys/kernel/mm/transparent_hugepage/enabled
do echo x 2>/dev/null > $file && echo wrote $file; done; true";
    assert_eq!(machine.sh(&[], script).stdout, b"0\n0\n");
}
