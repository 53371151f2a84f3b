//! The filter in force: real processes, real system calls.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use cudock_confine::Capability;
use cudock_confine::defaults::STANDARD_CAPABILITIES;
use cudock_testkit::process::{self, is_reentered};
use cudock_testkit::{missing, test_name};

use crate::support::{self, has, text};

/// A command that runs the program in its further arguments under what `choice` names.
fn confined(choice: &str, capabilities: &[Capability]) -> Command {
    let names: Vec<&str> = capabilities.iter().map(|capability| capability.name()).collect();
    let mut command = Command::new(process::example("confined"));
    command.arg(choice).arg(names.join(" "));
    command
}

/// Runs a program under what `choice` names.
fn run_under(choice: &str, capabilities: &[Capability], program: &[&str]) -> Output {
    confined(choice, capabilities).args(program).output().unwrap()
}

/// Makes system calls by number and says what came of each, one a line.
const CALLER: &str = r"
import ctypes, errno, sys
library = ctypes.CDLL(None, use_errno=True)
library.syscall.restype = ctypes.c_long
for word in sys.argv[1:]:
    name, number, arguments = word.split(':')
    arguments = [ctypes.c_ulong(int(one, 0) & (2**64 - 1)) for one in arguments.split(',') if one]
    ctypes.set_errno(0)
    result = library.syscall(ctypes.c_long(int(number, 0)), *arguments)
    code = errno.errorcode.get(ctypes.get_errno(), '?') if result == -1 else 'OK'
    sys.stderr.write(f'{name}={code}\n')
";

/// What each of the calls answers under the filter of these capabilities; none where Python is missing.
fn call(
    choice: &str,
    capabilities: &[Capability],
    calls: &[(&str, i64, &str)],
) -> Option<BTreeMap<String, String>> {
    if !has("python3") {
        missing("python3", "python3 is not here to make system calls with");
        return None;
    }
    let calls: Vec<String> =
        calls.iter().map(|(name, number, arguments)| format!("{name}:{number}:{arguments}")).collect();
    let mut program = vec!["python3", "-c", CALLER];
    program.extend(calls.iter().map(String::as_str));
    let output = run_under(choice, capabilities, &program);
    let answers: BTreeMap<String, String> = String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, answer)| (name.to_owned(), answer.to_owned()))
        .collect();
    assert_eq!(answers.len(), calls.len(), "{}", text(&output));
    Some(answers)
}

/// None of these would do harm if it were allowed: each has an argument that is wrong, and the kernel says so.
const REFUSED: [(&str, i64, &str); 20] = [
    ("mount", libc::SYS_mount, "0,0,0,0,0"),
    ("umount2", libc::SYS_umount2, "0,0"),
    ("pivot_root", libc::SYS_pivot_root, "0,0"),
    ("reboot", libc::SYS_reboot, "0,0,0,0"),
    ("kexec_load", libc::SYS_kexec_load, "0,0,0,0xffff"),
    ("add_key", libc::SYS_add_key, "0,0,0,0,0"),
    ("keyctl", libc::SYS_keyctl, "0xffff,0,0,0,0"),
    ("request_key", libc::SYS_request_key, "0,0,0,0"),
    ("init_module", libc::SYS_init_module, "0,0,0"),
    ("bpf", libc::SYS_bpf, "0xffff,0,0"),
    ("perf_event_open", libc::SYS_perf_event_open, "0,0,0,0,0"),
    ("userfaultfd", libc::SYS_userfaultfd, "0xffff"),
    ("io_uring_setup", libc::SYS_io_uring_setup, "0,0"),
    ("setns", libc::SYS_setns, "-1,0"),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, "-1,0,0"),
    ("settimeofday", libc::SYS_settimeofday, "1,1"),
    ("move_mount", libc::SYS_move_mount, "-1,0,-1,0,0"),
    ("fsopen", libc::SYS_fsopen, "0,0"),
    ("swapon", libc::SYS_swapon, "0,0"),
    // The last, as it would take the caller's rights away where it is allowed.
    ("unshare user", libc::SYS_unshare, "0x10000000"),
];

#[test]
fn what_rules_the_machine_is_refused() {
    let Some(answers) = call("builtin", &STANDARD_CAPABILITIES, &REFUSED) else { return };
    for (name, answer) in &answers {
        assert_eq!(answer, "EPERM", "{name}");
    }
}

/// Without this, the test above would pass on a machine that refuses everything by itself.
#[test]
fn without_a_filter_the_same_calls_reach_the_kernel() {
    if !support::is_root() {
        missing("root", "an unprivileged user is refused these calls anyway");
        return;
    }
    let Some(answers) = call("unconfined", &STANDARD_CAPABILITIES, &REFUSED) else { return };
    for name in ["mount", "umount2", "pivot_root", "reboot", "setns", "unshare user", "move_mount", "fsopen"]
    {
        assert_ne!(answers[name], "EPERM", "{name}");
    }
}

#[test]
fn clone3_is_not_there_and_clone_makes_no_namespaces() {
    let calls = [
        ("clone3", libc::SYS_clone3, "0,0"),
        ("clone user", libc::SYS_clone, "0x10000011,0,0,0,0"),
        ("clone mount", libc::SYS_clone, "0x20011,0,0,0,0"),
        ("clone net", libc::SYS_clone, "0x40000011,0,0,0,0"),
    ];
    let Some(answers) = call("builtin", &STANDARD_CAPABILITIES, &calls) else { return };
    assert_eq!(answers["clone3"], "ENOSYS");
    for name in ["clone user", "clone mount", "clone net"] {
        assert_eq!(answers[name], "EPERM", "{name}");
    }
}

#[test]
fn sockets_that_lead_out_of_the_container_cannot_be_made() {
    let calls = [
        ("unix", libc::SYS_socket, "1,1,0"),
        ("inet", libc::SYS_socket, "2,1,0"),
        ("netlink", libc::SYS_socket, "16,3,0"),
        ("vsock", libc::SYS_socket, "40,1,0"),
        ("alg", libc::SYS_socket, "38,5,0"),
        ("vsock with stray upper bits", libc::SYS_socket, "0x100000028,1,0"),
        ("unix with stray upper bits", libc::SYS_socket, "0x100000001,1,0"),
    ];
    let Some(answers) = call("builtin", &STANDARD_CAPABILITIES, &calls) else { return };
    for (name, answer) in &answers {
        let wanted = if ["unix", "inet", "netlink"].contains(&name.as_str()) { "OK" } else { "EPERM" };
        assert_eq!(answer, wanted, "{name}");
    }
}

#[test]
fn personality_takes_only_the_harmless_values() {
    let calls = [
        ("ask", libc::SYS_personality, "0xffffffff"),
        ("linux", libc::SYS_personality, "0"),
        ("no randomization", libc::SYS_personality, "0x0040000"),
        ("read implies exec", libc::SYS_personality, "0x0400000"),
    ];
    let Some(answers) = call("builtin", &STANDARD_CAPABILITIES, &calls) else { return };
    assert_eq!(answers["ask"], "OK");
    assert_eq!(answers["linux"], "OK");
    assert_eq!(answers["no randomization"], "EPERM");
    assert_eq!(answers["read implies exec"], "EPERM");
}

#[test]
fn what_gpu_work_needs_is_allowed() {
    let calls = [
        ("get_mempolicy", libc::SYS_get_mempolicy, "0,0,0,0,0"),
        ("set_mempolicy", libc::SYS_set_mempolicy, "0,0,0"),
        ("mbind", libc::SYS_mbind, "0,0,0,0,0,0"),
        ("move_pages", libc::SYS_move_pages, "0,0,0,0,0,0"),
        ("pidfd_getfd", libc::SYS_pidfd_getfd, "-1,0,0"),
        ("process_vm_readv", libc::SYS_process_vm_readv, "0x7fffffff,0,0,0,0,0"),
        ("ptrace", libc::SYS_ptrace, "16,0x7fffffff,0,0"),
        ("ioctl", libc::SYS_ioctl, "-1,0,0"),
        ("memfd_create", libc::SYS_memfd_create, "0,0"),
        ("mlock", libc::SYS_mlock, "0,0"),
        ("sched_setaffinity", libc::SYS_sched_setaffinity, "0,0,0"),
    ];
    let Some(answers) = call("builtin", &STANDARD_CAPABILITIES, &calls) else { return };
    for (name, answer) in &answers {
        assert_ne!(answer, "EPERM", "{name}");
    }
    assert_eq!(answers["pidfd_getfd"], "EBADF");
    assert_eq!(answers["ptrace"], "ESRCH");
}

#[test]
fn calls_of_the_future_and_of_x32_are_not_there() {
    let mut calls = vec![("future", 600, ""), ("far future", 0x3fff_ffff, "")];
    if cfg!(target_arch = "x86_64") {
        calls.push(("x32 getpid", 0x4000_0000 + 39, ""));
        calls.push(("x32 mount", 0x4000_0000 + 165, "0,0,0,0,0"));
    }
    let Some(answers) = call("builtin", &STANDARD_CAPABILITIES, &calls) else { return };
    for (name, answer) in &answers {
        assert_eq!(answer, "ENOSYS", "{name}");
    }
}

#[test]
fn a_capability_brings_its_calls() {
    let calls = [
        ("mount", libc::SYS_mount, "0,0,0,0,0"),
        ("clone3", libc::SYS_clone3, "0,0"),
        ("reboot", libc::SYS_reboot, "0,0,0,0"),
    ];
    let Some(answers) = call("builtin", &[Capability::SysAdmin], &calls) else { return };
    assert_eq!(answers["clone3"], "EINVAL");
    assert_eq!(answers["reboot"], "EPERM");
    if support::is_root() {
        assert_ne!(answers["mount"], "EPERM");
    }
}

/// Makes calls with the numbers of 32-bit x86 from a 64-bit program, by `int 0x80`.
const CALLER_32: &str = r"
import ctypes, mmap, sys
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex('5389f889f387cacd8048985bc3'))
call = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 4)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
for word in sys.argv[1:]:
    name, number, arguments = word.split(':')
    arguments = ([int(one, 0) for one in arguments.split(',') if one] + [0, 0, 0])[:3]
    sys.stderr.write(f'{name}={call(int(number), *arguments)}\n')
";

#[test]
fn the_32_bit_way_into_the_kernel_is_no_way_around() {
    if !cfg!(target_arch = "x86_64") || !has("python3") {
        missing("python3", "needs 64-bit x86 and python3");
        return;
    }
    let calls = [
        "getpid:20:",
        "mount:21:0,0,0",
        "unshare:310:0x10000000",
        "clone3:435:0,0",
        "socket inet:359:2,1,0",
        "socket vsock:359:40,1,0",
        "socketcall socket:102:1,0",
        "socketcall listen:102:4,0",
        "future:600:",
    ];
    let answers = |choice| {
        let mut program = vec!["python3", "-c", CALLER_32];
        program.extend(calls);
        let output = run_under(choice, &STANDARD_CAPABILITIES, &program);
        let answers: BTreeMap<String, i64> = String::from_utf8_lossy(&output.stderr)
            .lines()
            .filter_map(|line| line.split_once('='))
            .filter_map(|(name, answer)| Some((name.to_owned(), answer.parse().ok()?)))
            .collect();
        answers
    };
    let free = answers("unconfined");
    if free.get("getpid").is_none_or(|&pid| pid <= 0) {
        missing("32-bit-calls", "this kernel has no 32-bit calls");
        return;
    }
    let held = answers("builtin");
    assert!(held["getpid"] > 0);
    assert_eq!(held["mount"], -1);
    assert_eq!(held["unshare"], -1);
    assert_eq!(held["clone3"], -38);
    assert!(held["socket inet"] >= 0);
    assert_eq!(held["socket vsock"], -1);
    assert_eq!(held["socketcall socket"], -38);
    assert_eq!(held["socketcall listen"], free["socketcall listen"]);
    assert_eq!(held["future"], -38);
}

#[test]
fn a_shell_runs_under_the_filter() {
    let script = "set -e; echo one | cat; ls / > /dev/null; (exit 3) || echo \"status $?\"; sleep 0 & wait";
    let output = run_under("builtin", &STANDARD_CAPABILITIES, &["sh", "-c", script]);
    assert!(output.status.success(), "{}", text(&output));
    let report = text(&output);
    assert!(report.contains("one\n") && report.contains("status 3\n"), "{report}");
}

#[test]
fn python_runs_under_the_filter_with_threads_processes_and_sockets() {
    if !has("python3") {
        missing("python3", "python3 is not here");
        return;
    }
    let script = r"
import mmap, os, socket, subprocess, tempfile, threading
total = []
threads = [threading.Thread(target=lambda: total.append(sum(range(10000)))) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(total) == 8
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
accepted, _ = server.accept()
client.sendall(b'x')
assert accepted.recv(1) == b'x'
assert subprocess.run(['sh', '-c', 'exit 7']).returncode == 7
if os.fork() == 0: os._exit(0)
os.wait()
with tempfile.NamedTemporaryFile() as file:
    file.write(b'0' * 4096); file.flush()
    assert mmap.mmap(file.fileno(), 4096)[0] == 48
os.sched_setaffinity(0, os.sched_getaffinity(0))
print('all done')
";
    let output = run_under("builtin", &STANDARD_CAPABILITIES, &["python3", "-c", script]);
    assert!(output.status.success() && text(&output).contains("all done"), "{}", text(&output));
}

#[test]
fn a_rust_program_with_threads_runs_under_the_filter() {
    let test = test_name!();
    if is_reentered(test) {
        let threads: Vec<_> = (0..16_u64).map(|n| std::thread::spawn(move || (0..=n).sum::<u64>())).collect();
        let sum: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(Command::new("true").status().unwrap().success());
        eprintln!("the sum of the threads is {sum}");
        return;
    }
    let mut command = confined("builtin", &STANDARD_CAPABILITIES);
    command.arg(std::env::current_exe().unwrap());
    let output = process::reenter_as(command, test).output().unwrap();
    let shown = text(&output);
    assert!(output.status.success() && shown.contains("the sum of the threads is 680"), "{shown}");
}

#[test]
fn a_users_own_profile_is_in_force() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profile.json");
    let profile = r#"{
        "defaultAction": "SCMP_ACT_ALLOW",
        "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]}],
        "syscalls": [
            {"names": ["sethostname"], "action": "SCMP_ACT_ERRNO", "errnoRet": 71},
            {"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13,
             "args": [{"index": 0, "value": 2, "valueTwo": 0, "op": "SCMP_CMP_EQ"}]}
        ]
    }"#;
    std::fs::write(&path, profile).unwrap();
    let calls = [
        ("sethostname", libc::SYS_sethostname, "0,0x7fffffff"),
        ("inet", libc::SYS_socket, "2,1,0"),
        ("inet6 or not there", libc::SYS_socket, "10,1,0"),
        ("unix", libc::SYS_socket, "1,1,0"),
    ];
    let Some(answers) = call(path.to_str().unwrap(), &STANDARD_CAPABILITIES, &calls) else { return };
    assert_eq!(answers["sethostname"], "EPROTO");
    assert_eq!(answers["inet"], "EACCES");
    assert_eq!(answers["unix"], "OK");
}
