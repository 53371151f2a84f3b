//! Joins a running container: the side of the caller, which stays outside.
//!
//! A process inside may look at every process of its pid namespace, and with `CAP_SYS_PTRACE` follow `/proc/PID/root`,
//! read its memory or attach to it. So nothing of this machine may be left in a process when it becomes visible there.
//! Three processes take part, as with runc:
//!
//! 1. the caller stays outside and reports how it went;
//! 2. a helper, still in the caller's pid namespace, joins the control groups and all other namespaces, closes every
//!    descriptor, and gives up all rights that the container does not have. It is this program started over: a copy of the
//!    caller would have all that the caller has read in its memory. The libraries it maps cannot be written to
//!    ([`crate::library_view`]);
//! 3. it forks into the pid namespace. The process that is born there has the container's root, directory,
//!    credentials and (with the default profile) filter of system calls from its first instruction on.
//!
//! The second and the third are in [`crate::enter`].

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::thread::ThreadNameSpaceType;

use crate::enter::{Entry, Inherited};
use crate::error::{OnFile, OnSystem, RuntimeError};
use crate::executor::understood;
use crate::headstart::own_directories;
use crate::library_view;
use crate::reexec;
use crate::status::process_began;

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
pub(crate) struct Joining {
    /// The container's first process.
    pub(crate) pid: i32,
    /// When that process began, so that another one with its number is not joined.
    pub(crate) began: Option<u64>,
    /// What is to run, and as whom.
    pub(crate) entry: Entry,
    /// Standard input, output and error.
    pub(crate) streams: [OwnedFd; 3],
}

impl Joining {
    /// Starts the program, as a child of this process; its number. Must be called with one thread.
    pub(crate) fn start(self) -> Result<i32, RuntimeError> {
        let ended = || RuntimeError::said("cannot join the container: it has ended");
        let pid = rustix::process::Pid::from_raw(self.pid).ok_or_else(ended)?;
        let container = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| ended())?;
        let namespaces = foreign_namespaces(self.pid);
        let groups = foreign_groups(self.pid)?;
        if process_began(self.pid) != self.began {
            return Err(ended());
        }
        let (reader, writer) = io::pipe().when("cannot make a pipe")?;
        let inherited = Inherited {
            container: hand_down(&container)?,
            namespaces: namespaces.bits(),
            groups: groups.iter().map(hand_down).collect::<Result<_, _>>()?,
            report_to: hand_down(&writer)?,
        };
        library_view::enter()?;
        let [stdin, stdout, stderr] = self.streams.map(Stdio::from);
        let helper = reexec::sealed_command(&["enter".into()], &(self.entry, inherited))?;
        let mut helper = helper.anonymous().spawn(stdin, stdout, stderr)?;
        drop((writer, container, groups));
        let mut reported = Vec::new();
        let read = reader.take(LONGEST_REPORT).read_to_end(&mut reported);
        let _ = helper.wait();
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
}

/// The namespaces of a process that this one is not in. One that is shared need not be joined, and may be one that a user
/// cannot join.
fn foreign_namespaces(pid: i32) -> ThreadNameSpaceType {
    let link = |process: &str, name: &str| fs::read_link(format!("/proc/{process}/ns/{name}")).ok();
    let foreign = NAMESPACES.iter().filter(|(name, _)| link("self", name) != link(&pid.to_string(), name));
    foreign.fold(ThreadNameSpaceType::empty(), |all, (_, kind)| all | *kind)
}

/// The lists of processes of the control groups that a process is in and this one is not, opened.
fn foreign_groups(pid: i32) -> Result<Vec<File>, RuntimeError> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let directories = |process: &str| {
        own_directories(&fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default(), &mounts)
    };
    let ours = directories("self");
    let theirs = directories(&pid.to_string()).into_iter().filter(|directory| !ours.contains(directory));
    let open = |directory: PathBuf| {
        let file = directory.join("cgroup.procs");
        File::options().write(true).open(&file).on("cannot join", &file)
    };
    theirs.map(open).collect()
}

/// Keeps a descriptor open in the program that is started next; its number there.
fn hand_down(descriptor: &(impl std::os::fd::AsFd + AsRawFd)) -> Result<i32, RuntimeError> {
    fcntl_setfd(descriptor, FdFlags::empty()).when("cannot hand a descriptor down")?;
    Ok(descriptor.as_raw_fd())
}

/// Whether a process is a child of this one.
fn is_child(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
    parent == Some(std::process::id())
}
