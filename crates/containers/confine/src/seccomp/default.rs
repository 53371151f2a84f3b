//! The default profile.
//!
//! It follows docker's (`seccomp/default_linux.go` of github.com/moby/profiles at commit 02e898b1, of 2026, and
//! docs.docker.com/engine/security/seccomp, both read 2026-11-15): calls that are not listed fail with EPERM. It
//! differs where GPU workloads need it, and where docker relies on a security module of the kernel, which cudock does not
//! set up:
//!
//! - `get_mempolicy`, `mbind`, `set_mempolicy` and `move_pages` are allowed without `CAP_SYS_NICE`: NCCL, CUDA's pinned
//!   memory and `numactl` place memory with them, and fail or get slow without. The kernel itself checks access to other
//!   processes.
//! - `pidfd_getfd` is allowed like `ptrace`, whose permission the kernel requires: PyTorch shares GPU memory between
//!   workers with it.
//! - `socketcall`, the socket interface of old 32-bit programs, cannot create a socket: the address family is behind a
//!   pointer, which a filter cannot read, so it would open denied families. (docker did the same for some days in May
//!   2026, moby #52494, and then left it to security modules, #52547.)
//! - calls newer than our table fail with ENOSYS, not EPERM, as under runc.

use super::abi::Abi;
use super::profile::{Action, NO_SUCH_CALL, NOT_PERMITTED, Operator, Profile, SyscallRule};
use crate::Capability;

/// Files: names, attributes, watching.
const FILES: &str = "
    access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2
    fadvise64 fadvise64_64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl
    fcntl64 fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64
    fsync ftruncate ftruncate64 futimesat getcwd getdents getdents64 getxattr getxattrat inotify_add_watch
    inotify_init inotify_init1 inotify_rm_watch ioctl lchown lchown32 lgetxattr link linkat listmount listxattr
    listxattrat llistxattr _llseek lremovexattr lseek lsetxattr lstat lstat64 mkdir mkdirat mknod mknodat
    name_to_handle_at newfstatat open openat openat2 readlink readlinkat removexattr removexattrat rename renameat
    renameat2 rmdir setxattr setxattrat stat stat64 statfs statfs64 statmount statx symlink symlinkat sync
    sync_file_range syncfs truncate truncate64 umask unlink unlinkat utime utimensat utimensat_time64 utimes";

/// Reading, writing and polling.
const IO: &str = "
    cachestat epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old
    eventfd eventfd2 io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit
    ioprio_get ioprio_set _newselect pipe pipe2 poll ppoll ppoll_time64 pread64 preadv preadv2 pselect6
    pselect6_time64 pwrite64 pwritev pwritev2 read readahead readv select sendfile sendfile64 splice tee vmsplice
    write writev";

const MEMORY: &str = "
    brk get_mempolicy madvise map_shadow_stack mbind membarrier memfd_create memfd_secret mincore mlock mlock2
    mlockall mmap mmap2 move_pages mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free
    pkey_mprotect remap_file_pages set_mempolicy";

/// Processes and threads: identity, limits, scheduling, signals.
const PROCESSES: &str = "
    capget capset execve execveat exit exit_group fork futex futex_requeue futex_time64 futex_wait futex_waitv
    futex_wake get_robust_list get_thread_area getcpu getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups
    getgroups32 getpgid getpgrp getpid getppid getpriority getresgid getresgid32 getresuid getresuid32 getrlimit
    getrusage getsid gettid getuid getuid32 kill landlock_add_rule landlock_create_ruleset landlock_restrict_self
    pause pidfd_open pidfd_send_signal prctl prlimit64 process_mrelease restart_syscall rseq rt_sigaction
    rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64
    rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
    sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr
    sched_setparam sched_setscheduler sched_yield seccomp set_robust_list set_thread_area set_tid_address setfsgid
    setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setpgid setpriority setregid setregid32
    setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit setsid setuid setuid32 sigaltstack
    signalfd signalfd4 sigprocmask sigreturn tgkill tkill ugetrlimit uprobe uretprobe vfork wait4 waitid waitpid";

/// Clocks and timers. `adjtimex` checks the capability to set a clock itself.
const TIME: &str = "
    adjtimex alarm clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64
    clock_nanosleep clock_nanosleep_time64 getitimer gettimeofday nanosleep setitimer time timer_create timer_delete
    timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime
    timerfd_gettime64 timerfd_settime timerfd_settime64 times";

/// Existing sockets, and IPC.
const IPC: &str = "
    accept accept4 bind connect getpeername getsockname getsockopt ipc listen mq_getsetattr mq_notify mq_open
    mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink msgctl msgget msgrcv msgsnd
    recvfrom recvmmsg recvmmsg_time64 recvmsg semctl semget semop semtimedop semtimedop_time64 sendmmsg
    sendmsg sendto setsockopt shmat shmctl shmdt shmget shutdown socketpair";

/// System information and random numbers.
const SYSTEM: &str = "getrandom sysinfo uname";

/// Administration, with `CAP_SYS_ADMIN`.
const ADMINISTRATION: &str = "
    bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie lsm_get_self_attr lsm_list_modules
    lsm_set_self_attr mount mount_setattr move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname
    sethostname setns syslog umount umount2 unshare";

/// Calls that a capability allows.
const BY_CAPABILITY: [(Capability, &str); 14] = [
    (Capability::DacReadSearch, "open_by_handle_at"),
    (Capability::SysAdmin, ADMINISTRATION),
    (Capability::SysBoot, "reboot"),
    (Capability::SysChroot, "chroot"),
    (Capability::SysModule, "delete_module finit_module init_module"),
    (Capability::SysPacct, "acct"),
    (Capability::SysPtrace, "kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace"),
    (Capability::SysRawio, "ioperm iopl"),
    (Capability::SysTime, "clock_settime clock_settime64 settimeofday stime"),
    (Capability::SysTtyConfig, "vhangup"),
    (Capability::SysNice, "set_mempolicy_home_node"),
    (Capability::Syslog, "syslog"),
    (Capability::Bpf, "bpf"),
    (Capability::Perfmon, "perf_event_open"),
];

/// Allowed address families, as inclusive ranges. The gaps are families that current kernels no longer have (`DECnet`,
/// Econet, ATM SVC, `IrDA`, WANPIPE, ISDN, CAIF) and two that lead out of the container: `AF_ALG` (38), the kernel's crypto
/// API, through which CVE-2026-31431 wrote to files of other containers, and `AF_VSOCK` (40), which reaches the hypervisor
/// past all network namespaces.
const FAMILIES: [(u64, u64); 8] =
    [(1, 11), (13, 18), (21, 22), (24, 24), (26, 33), (35, 36), (39, 39), (41, 45)];

/// `personality` values: Linux, 32-bit addresses, each also as Linux 2.6, and the query.
const PERSONALITIES: [u64; 5] = [0, 0x0008, 0x0002_0000, 0x0002_0008, 0xffff_ffff];

/// The flags of `clone` that create namespaces: mount, cgroup, UTS, IPC, user, PID, network. (Only `clone3` and `unshare`
/// have the flag for time namespaces.)
const NAMESPACES: u64 = 0x7e02_0000;

/// `socketcall`'s number for `socket`.
const SOCKETCALL_SOCKET: u64 = 1;

pub(super) fn profile() -> Profile {
    let allow = |names| SyscallRule::always(names, Action::Allow);
    let mut rules: Vec<SyscallRule> = [FILES, IO, MEMORY, PROCESSES, TIME, IPC, SYSTEM].map(allow).into();
    // Before Linux 4.8 a tracer could change a call after the filter had checked it.
    rules.push(allow("pidfd_getfd process_vm_readv process_vm_writev ptrace").only_from(4, 8));
    rules.extend(BY_CAPABILITY.map(|(capability, names)| allow(names).only_with(capability)));

    let no_namespaces = Operator::MaskedEqual { mask: NAMESPACES };
    rules.push(allow("clone").except_with(Capability::SysAdmin).where_first(no_namespaces, 0));
    // Its flags are behind a pointer; after ENOSYS, C libraries fall back to `clone`.
    rules.push(SyscallRule::always("clone3", NO_SUCH_CALL).except_with(Capability::SysAdmin));

    for (first, last) in FAMILIES {
        let from_first = allow("socket").where_first(Operator::GreaterOrEqual, first);
        rules.push(from_first.where_first(Operator::LessOrEqual, last));
    }
    rules.push(allow("socketcall").where_first(Operator::NotEqual, SOCKETCALL_SOCKET));
    rules.push(SyscallRule::always("socketcall", NO_SUCH_CALL));
    rules.extend(PERSONALITIES.map(|value| allow("personality").where_first(Operator::Equal, value)));

    rules.push(allow("arch_prctl modify_ldt").only_on(Abi::X86_64.go_name()));
    Profile { otherwise: NOT_PERMITTED, companions: vec![Abi::X86_64, Abi::X86], rules }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::syscalls;

    #[test]
    fn every_call_it_names_exists() {
        for rule in profile().rules {
            for name in rule.names {
                assert!(syscalls::known(name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn administration_is_never_allowed_without_a_capability() {
        let free: Vec<_> = profile()
            .rules
            .into_iter()
            .filter(|rule| {
                rule.action == Action::Allow && rule.only.capabilities.is_empty() && rule.arguments.is_empty()
            })
            .flat_map(|rule| rule.names)
            .collect();
        let administration = "mount umount2 pivot_root reboot kexec_load kexec_file_load init_module finit_module \
            add_key keyctl request_key bpf perf_event_open userfaultfd io_uring_setup setns unshare swapon \
            open_by_handle_at quotactl settimeofday iopl open_tree move_mount";
        for name in administration.split_ascii_whitespace() {
            assert!(syscalls::known(name).is_some(), "{name}");
            assert!(!free.contains(&name), "{name}");
        }
    }
}
