//! Joins a running container and becomes a further program in it.
//!
//! A process inside may look at every process of its pid namespace, and with `CAP_SYS_PTRACE` follow `/proc/PID/root` or
//! attach to it. So nothing of this machine may be left in a process when it becomes visible there. Three processes take
//! part, in the order that runc has, too:
//!
//! 1. the caller stays outside and reports how it went;
//! 2. a helper, still in the caller's pid namespace, joins the control groups and all other namespaces, closes every
//!    descriptor, and gives up all rights that the container does not have;
//! 3. it forks into the pid namespace. The process that is born there has the container's root, directory,
//!    credentials and (with the default profile) filter of system calls from its first instruction on.

use std::convert::Infallible;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use cudock_confine::Capability;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::waitpid;
use nix::unistd::{Gid, Pid, Uid};
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::thread::{CapabilitySet, CapabilitySets, ThreadNameSpaceType};

use crate::error::{OnSystem, RuntimeError};
use crate::executor::{Become, marked, understood};
use crate::headstart::own_folders;
use crate::launch::text;
use crate::limits;
use crate::plan::{Seccomp, Security};
use crate::status::process_began;
use crate::sys::{self, Parent};
use crate::user::Identity;

/// More than this is not read of what a joining process reports: it may be in the hands of the container already.
const LONGEST_REPORT: u64 = 16 << 10;

/// The namespaces of a container, by their names in `/proc/PID/ns`.
const NAMESPACES: [(&str, ThreadNameSpaceType); 6] = [
    ("cgroup", ThreadNameSpaceType::CONTROL_GROUP),
    ("ipc", ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION),
    ("mnt", ThreadNameSpaceType::MOUNT),
    ("net", ThreadNameSpaceType::NETWORK),
    ("pid", ThreadNameSpaceType::PROCESS_ID),
    ("uts", ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME),
];

/// A program that is to run in a container beside its first process.
pub(crate) struct Joining<'a> {
    /// The container's first process.
    pub(crate) pid: i32,
    /// When that process began, so that another one with its number is not joined.
    pub(crate) began: Option<u64>,
    pub(crate) program: &'a Become,
    pub(crate) args: &'a [String],
    pub(crate) identity: &'a Identity,
    pub(crate) security: &'a Security,
    pub(crate) rlimits: &'a [(String, u64, u64)],
    /// Standard input, output and error.
    pub(crate) streams: [OwnedFd; 3],
    /// Whether the streams are a terminal, which becomes the program's own.
    pub(crate) tty: bool,
}

impl Joining<'_> {
    /// Starts the program, as a child of this process; its number. Must be called with one thread.
    pub(crate) fn start(self) -> Result<i32, RuntimeError> {
        let ended = || RuntimeError::said("cannot join the container: it has ended");
        let pid = rustix::process::Pid::from_raw(self.pid).ok_or_else(ended)?;
        let container = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| ended())?;
        let namespaces = foreign_namespaces(self.pid);
        let groups = foreign_groups(self.pid);
        if process_began(self.pid) != self.began {
            return Err(ended());
        }
        let (reader, writer) = io::pipe().when("cannot make a pipe")?;
        let helper = sys::spawn(Parent::Us, || {
            let entered = self.enter(container.as_fd(), namespaces, &groups, writer.as_fd());
            let (report_to, outcome) = match entered {
                Ok(report_to) => (report_to, self.fork_inside(report_to)),
                Err(error) => (writer.as_fd(), Err(error)),
            };
            outcome.map_or_else(|error| report(report_to, 'e', &error), |pid| report(report_to, 'p', &pid));
            0
        })
        .when("cannot start a process")?;
        drop((writer, self.streams));
        let mut reported = Vec::new();
        let read = reader.take(LONGEST_REPORT).read_to_end(&mut reported);
        let _ = waitpid(Pid::from_raw(helper), None);
        read.when("cannot hear from the joining process")?;
        let reported = String::from_utf8_lossy(&reported);
        let messages = |kind: char| reported.split('\0').find_map(move |one| one.strip_prefix(kind));
        // What is reported as a number may come from the container: only a child of ours is taken for what we started.
        let started = messages('p').and_then(|pid| pid.parse().ok()).filter(|pid| is_child(*pid));
        match (started, messages('e')) {
            (Some(pid), None) => Ok(pid),
            (started, error) => {
                if let Some(pid) = started {
                    let _ = nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL);
                    let _ = waitpid(Pid::from_raw(pid), None);
                }
                Err(match understood(error.unwrap_or("the joining process was killed")) {
                    RuntimeError::Create(text) => {
                        RuntimeError::said(format!("cannot join the container: {text}"))
                    }
                    error => error,
                })
            }
        }
    }

    /// The helper joins everything there is to join, while nobody inside can see it. Where it reports to from then on.
    fn enter(
        &self,
        container: BorrowedFd<'_>,
        namespaces: ThreadNameSpaceType,
        groups: &[PathBuf],
        report_to: BorrowedFd<'_>,
    ) -> Result<BorrowedFd<'static>, String> {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(step("set the death signal"))?;
        nix::sys::prctl::set_dumpable(false).map_err(step("make the process undumpable"))?;
        rustix::thread::set_name(c"cudock:exec").map_err(step("set the name"))?;
        for group in groups {
            fs::write(group, "0").map_err(step(&format!("join {}", group.display())))?;
        }
        limits::apply(self.rlimits).map_err(|error| text(&error))?;
        let [stdin, stdout, stderr] = &self.streams;
        rustix::stdio::dup2_stdin(stdin).map_err(step("pass standard input on"))?;
        rustix::stdio::dup2_stdout(stdout).map_err(step("pass standard output on"))?;
        rustix::stdio::dup2_stderr(stderr).map_err(step("pass standard error on"))?;
        // This also makes the container's root our root and our directory. The pid namespace is that of children only.
        rustix::thread::move_into_thread_name_spaces(container, namespaces)
            .map_err(step("join the namespaces"))?;
        sys::keep_as_third(report_to).map_err(step("close descriptors"))
    }

    /// The helper gives up its rights and starts the process inside, whose number it returns.
    fn fork_inside(&self, report_to: BorrowedFd<'_>) -> Result<String, String> {
        // As runc does: a directory that its user may not enter is one to start in all the same, and one that only its
        // user may enter, on a network file system say, is entered as that user.
        let entered = self.program.enter_cwd();
        self.give_up_rights()?;
        let entered = entered.or_else(|_| self.program.enter_cwd());
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
        sys::restore_signals();
        SigSet::empty().thread_set_mask().map_err(step("unblock signals"))?;
        // A profile of the user's own may forbid calls that are still to come.
        let early = self.security.seccomp == Seccomp::Default;
        if early {
            self.filter()?;
        }
        let pid = sys::spawn(Parent::Ours, || {
            let Err(error) = self.become_program(entered, early);
            report(report_to, 'e', &error);
            1
        })
        .map_err(step("start a process"))?;
        Ok(pid.to_string())
    }

    /// The process in the container's pid namespace.
    fn become_program(&self, entered: Result<(), String>, filtered: bool) -> Result<Infallible, String> {
        nix::unistd::setsid().map_err(step("start a session"))?;
        if self.tty {
            rustix::process::ioctl_tiocsctty(io::stdin()).map_err(step("take the terminal"))?;
        }
        // It does not outlive its caller: nobody would read what it writes.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(step("set the death signal"))?;
        // Only here `/proc/self` is what the program will see.
        entered.or_else(|_| self.program.enter_cwd())?;
        if self.program.instead.is_none() {
            self.program.find(self.args)?;
        }
        if !filtered {
            self.filter()?;
        }
        if let Some(instead) = self.program.instead {
            sys::close_all_but_standard();
            sys::replace_environment(&self.program.environment);
            std::process::exit(instead());
        }
        let program = self.args.first().ok_or("no command to run")?;
        let (error, code) = self.program.run(program, self.args);
        Err(marked(code, &format!("{program}: {}", error.desc())))
    }

    fn filter(&self) -> Result<(), String> {
        self.program.filter.as_ref().map_or(Ok(()), |filter| filter.install().map_err(|error| text(&error)))
    }

    /// Becomes the user, with the container's capabilities and no others.
    fn give_up_rights(&self) -> Result<(), String> {
        let mut kept = 0_u64;
        for name in &self.security.capabilities {
            kept |= 1 << Capability::from_name(name).map_err(|error| error.to_string())?.number();
        }
        for number in 0..64 {
            let one = CapabilitySet::from_bits_retain(1 << number);
            match rustix::thread::capability_is_in_bounding_set(one) {
                Ok(true) if kept & (1 << number) == 0 => {
                    rustix::thread::remove_capability_from_bounding_set(one)
                        .map_err(step("drop capabilities"))?;
                }
                Ok(_) => {}
                // The kernel knows no more.
                Err(_) => break,
            }
        }
        let _ = rustix::thread::clear_ambient_capability_set();
        let groups: Vec<Gid> = self.identity.groups.iter().copied().map(Gid::from_raw).collect();
        match nix::unistd::setgroups(&groups) {
            // In a user namespace of one user groups cannot be given up, and there is only that user's.
            Err(nix::Error::EPERM) if groups.is_empty() => {}
            other => other.map_err(step("set the groups"))?,
        }
        let (uid, gid) = (Uid::from_raw(self.identity.uid), Gid::from_raw(self.identity.gid));
        nix::unistd::setresgid(gid, gid, gid).map_err(step("set the group"))?;
        nix::unistd::setresuid(uid, uid, uid).map_err(step("set the user"))?;
        let ours = rustix::thread::capabilities(None).map_err(step("read capabilities"))?;
        // Other users than root have lost theirs with the change.
        let kept = CapabilitySet::from_bits_retain(kept) & ours.permitted;
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        rustix::thread::set_capabilities(None, sets).map_err(step("set capabilities"))?;
        if self.security.no_new_privileges {
            nix::sys::prctl::set_no_new_privs().map_err(step("forbid new privileges"))?;
        }
        // Changing the user may have changed it.
        nix::sys::prctl::set_dumpable(false).map_err(step("make the process undumpable"))
    }
}

/// The namespaces of a process that this one is not in. One that is shared need not be joined, and may be one that a user
/// cannot join.
fn foreign_namespaces(pid: i32) -> ThreadNameSpaceType {
    let link = |process: &str, name: &str| fs::read_link(format!("/proc/{process}/ns/{name}")).ok();
    let foreign = NAMESPACES.iter().filter(|(name, _)| link("self", name) != link(&pid.to_string(), name));
    foreign.fold(ThreadNameSpaceType::empty(), |all, (_, kind)| all | *kind)
}

/// The lists of processes of the control groups that a process is in and this one is not.
fn foreign_groups(pid: i32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let folders = |process: &str| {
        own_folders(&fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default(), &mounts)
    };
    let ours = folders("self");
    let theirs = folders(&pid.to_string()).into_iter().filter(|folder| !ours.contains(folder));
    theirs.map(|folder| folder.join("cgroup.procs")).collect()
}

/// Whether a process is a child of this one.
fn is_child(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
    parent == Some(std::process::id())
}

/// Sends a message to the caller, in one piece.
fn report(to: BorrowedFd<'_>, kind: char, message: &str) {
    let message = format!("{kind}{}\0", message.replace('\0', " "));
    let limit = message.len().min(4096);
    // Nobody is left to tell where it cannot be written.
    let _ = rustix::io::write(to, message.as_bytes().get(..limit).unwrap_or_default());
}

/// Names the step that failed.
fn step<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> String {
    move |error| format!("cannot {what}: {error}")
}
