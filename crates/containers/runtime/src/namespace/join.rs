//! Joins a running container, from the caller's side, which stays outside.
//!
//! A process inside can see every process of its PID namespace, and with `CAP_SYS_PTRACE` follow `/proc/PID/root`, read its
//! memory or attach to it. So a process must hold nothing of the host when it becomes visible there. Three processes take
//! part, as in runc:
//!
//! 1. the caller stays outside and reports the result;
//! 2. a helper, still in the caller's PID namespace, joins the cgroups and all other namespaces, closes every descriptor,
//!    and drops all privileges that the container does not have. It is a fresh execution of this program, since a fork
//!    would have everything that the caller has read in its memory. The libraries it maps cannot be written to
//!    ([`crate::start::library_view`]);
//! 3. the helper forks into the PID namespace. The new process has the container's root, directory, credentials and (with
//!    the default profile) seccomp filter from its first instruction.
//!
//! The second and the third are in [`crate::namespace::enter`].

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::Stdio;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::thread::ThreadNameSpaceType;

use crate::cgroup::mounts::cgroup_directories;
use crate::container::status::process_began;
use crate::error::{OnError, RuntimeError};
use crate::namespace::enter::{ExecSpec, Inherited};
use crate::namespace::reexec;
use crate::start::executor::parse_error;
use crate::start::library_view;
use crate::supervise::signal::kill_and_reap;

/// The longest report of a joining process, which the container may control already.
const MAX_REPORT: u64 = 16 << 10;

/// The namespaces of a container, by their names in `/proc/PID/ns`.
const NAMESPACES: [(&str, ThreadNameSpaceType); 6] = [
    ("cgroup", ThreadNameSpaceType::CONTROL_GROUP),
    ("ipc", ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION),
    ("mnt", ThreadNameSpaceType::MOUNT),
    ("net", ThreadNameSpaceType::NETWORK),
    ("pid", ThreadNameSpaceType::PROCESS_ID),
    ("uts", ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME),
];

pub(crate) struct Joining {
    pub(crate) pid: i32,
    /// When that process started, so that no other one with the same PID is joined.
    pub(crate) began: Option<u64>,
    pub(crate) spec: ExecSpec,
    /// Standard input, output and error.
    pub(crate) streams: [OwnedFd; 3],
}

impl Joining {
    /// Starts the program as a child of this process and returns its PID. Must be called with one thread.
    pub(crate) fn start(self) -> Result<i32, RuntimeError> {
        let ended = || RuntimeError::reported("cannot join the container: it has ended");
        let pid = rustix::process::Pid::from_raw(self.pid).ok_or_else(ended)?;
        let container = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| ended())?;
        let namespaces = foreign_namespaces(self.pid);
        let groups = foreign_groups(self.pid)?;
        if process_began(self.pid) != self.began {
            return Err(ended());
        }
        let (reader, writer) = io::pipe().when("cannot create a pipe")?;
        let inherited = Inherited {
            container: hand_down(&container)?,
            namespaces: namespaces.bits(),
            groups: groups.iter().map(hand_down).collect::<Result<_, _>>()?,
            report_to: hand_down(&writer)?,
        };
        library_view::enter()?;
        let [stdin, stdout, stderr] = self.streams.map(Stdio::from);
        let helper = reexec::sealed_command(&["enter".into()], &(self.spec, inherited))?;
        let mut helper = helper.without_environment().spawn(stdin, stdout, stderr)?;
        drop((writer, container, groups));
        let mut reported = Vec::new();
        let read = reader.take(MAX_REPORT).read_to_end(&mut reported);
        let _ = helper.wait();
        read.when("cannot read the report of the joining process")?;
        let reported = String::from_utf8_lossy(&reported);
        let messages = |kind: char| reported.split('\0').find_map(move |one| one.strip_prefix(kind));
        // The reported PID may come from the container, so only a child of this process is accepted.
        let started = messages('p').and_then(|pid| pid.parse().ok()).filter(|pid| is_child(*pid));
        match (started, messages('e')) {
            (Some(pid), None) => Ok(pid),
            (started, error) => {
                if let Some(pid) = started {
                    kill_and_reap(pid);
                }
                Err(match parse_error(error.unwrap_or("the joining process was killed")) {
                    RuntimeError::Create(text) => {
                        RuntimeError::reported(format!("cannot join the container: {text}"))
                    }
                    error => error,
                })
            }
        }
    }
}

/// The namespaces of a process that this one is not in. A shared one need not be joined, and a user may not be able to.
fn foreign_namespaces(pid: i32) -> ThreadNameSpaceType {
    let link = |process: &str, name: &str| fs::read_link(format!("/proc/{process}/ns/{name}")).ok();
    let foreign = NAMESPACES.iter().filter(|(name, _)| link("self", name) != link(&pid.to_string(), name));
    foreign.fold(ThreadNameSpaceType::empty(), |all, (_, kind)| all | *kind)
}

/// The open `cgroup.procs` of the cgroups that a process is in and this one is not.
fn foreign_groups(pid: i32) -> Result<Vec<File>, RuntimeError> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let directories = |process: &str| {
        cgroup_directories(
            &fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default(),
            &mounts,
        )
    };
    let ours = directories("self");
    let theirs = directories(&pid.to_string()).into_iter().filter(|directory| !ours.contains(directory));
    let open = |directory: PathBuf| {
        let file = directory.join("cgroup.procs");
        File::options().write(true).open(&file).on("cannot join", &file)
    };
    theirs.map(open).collect()
}

/// Keeps a descriptor open in the next program, and returns its number.
fn hand_down(descriptor: &(impl std::os::fd::AsFd + AsRawFd)) -> Result<i32, RuntimeError> {
    fcntl_setfd(descriptor, FdFlags::empty()).when("cannot pass on a descriptor")?;
    Ok(descriptor.as_raw_fd())
}

fn is_child(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
    parent == Some(std::process::id())
}
