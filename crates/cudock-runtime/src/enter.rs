//! Enters a running container and becomes a further program in it: the side of the helper that [`crate::join`] starts.
//!
//! What it is handed belongs to the container, and so its memory holds nothing else. See there for the order of steps.

use std::convert::Infallible;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};

use cudock_confine::Capability;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Gid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets, ThreadNameSpaceType};
use serde::{Deserialize, Serialize};

use crate::error::RuntimeError;
use crate::executor::{Become, marked};
use crate::launch::{filter, text};
use crate::limits;
use crate::plan::{Seccomp, Security};
use crate::reexec;
use crate::sys;
use crate::user::Identity;

/// What is to run in a container, and as whom.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) args: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) cwd: String,
    pub(crate) identity: Identity,
    /// Without the devices, which are those of this machine.
    pub(crate) security: Security,
    pub(crate) rlimits: Vec<(String, u64, u64)>,
    /// Whether the streams are a terminal, which becomes the program's own.
    pub(crate) tty: bool,
}

/// What the caller opened for the helper, by number.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Inherited {
    /// A handle of the container's first process.
    pub(crate) container: i32,
    /// Which of its namespaces are joined.
    pub(crate) namespaces: u32,
    /// The lists of processes of its control groups.
    pub(crate) groups: Vec<i32>,
    /// Where to report how it went.
    pub(crate) report_to: i32,
}

/// Enters the container that the caller has opened. Must run in a process with one thread, which ends with it.
pub fn enter(handed: i32) -> Result<(), RuntimeError> {
    let (entry, inherited): (Entry, Inherited) = reexec::inherited(handed)?;
    // All descriptors but one are closed in one go, without their owners' knowledge.
    let report_to = ManuallyDrop::new(reexec::take_over(inherited.report_to));
    let (report_to, outcome) = match Entering::new(&entry) {
        Ok(entering) => match entering.join(&inherited, report_to.as_fd()) {
            Ok(kept) => (kept, entering.fork_inside(kept)),
            Err(error) => (report_to.as_fd(), Err(error)),
        },
        Err(error) => (report_to.as_fd(), Err(text(&error))),
    };
    outcome.map_or_else(|error| report(report_to, 'e', &error), |pid| report(report_to, 'p', &pid));
    Ok(())
}

struct Entering<'e> {
    entry: &'e Entry,
    program: Become,
}

impl<'e> Entering<'e> {
    fn new(entry: &'e Entry) -> Result<Self, RuntimeError> {
        let program = Become {
            environment: entry.environment.clone(),
            cwd: entry.cwd.clone(),
            filter: filter(&entry.security)?,
            size: None,
            late: false,
            instead: None,
            init: false,
        };
        Ok(Self { entry, program })
    }

    /// Joins everything there is to join, while nobody inside can see this process. Where it reports to from then on.
    fn join(&self, inherited: &Inherited, report_to: BorrowedFd<'_>) -> Result<BorrowedFd<'static>, String> {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(step("set the death signal"))?;
        nix::sys::prctl::set_dumpable(false).map_err(step("make the process undumpable"))?;
        rustix::thread::set_name(c"cudock:exec").map_err(step("set the name"))?;
        for group in &inherited.groups {
            reexec::take_over(*group).write_all(b"0").map_err(step("join a control group"))?;
        }
        limits::apply(&self.entry.rlimits).map_err(|error| text(&error))?;
        let container = ManuallyDrop::new(reexec::take_over(inherited.container));
        let namespaces = ThreadNameSpaceType::from_bits_retain(inherited.namespaces);
        // This also makes the container's root our root and our directory. The pid namespace is that of children only.
        rustix::thread::move_into_thread_name_spaces(container.as_fd(), namespaces)
            .map_err(step("join the namespaces"))?;
        sys::keep_as_third(report_to).map_err(step("close descriptors"))
    }

    /// Gives up all rights and starts the process inside, whose number it returns.
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
        let early = self.entry.security.seccomp == Seccomp::Default;
        if early {
            self.filter()?;
        }
        let pid = sys::spawn_sibling(|| {
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
        if self.entry.tty {
            rustix::process::ioctl_tiocsctty(io::stdin()).map_err(step("take the terminal"))?;
        }
        // It does not outlive its caller: nobody would read what it writes.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(step("set the death signal"))?;
        // Only here `/proc/self` is what the program will see.
        entered.or_else(|_| self.program.enter_cwd())?;
        self.program.find(&self.entry.args)?;
        if !filtered {
            self.filter()?;
        }
        let program = self.entry.args.first().ok_or("no command to run")?;
        let (error, code) = self.program.run(program, &self.entry.args);
        Err(marked(code, &format!("{program}: {}", error.desc())))
    }

    fn filter(&self) -> Result<(), String> {
        self.program.filter.as_ref().map_or(Ok(()), |filter| filter.install().map_err(|error| text(&error)))
    }

    /// Becomes the user, with the container's capabilities and no others.
    fn give_up_rights(&self) -> Result<(), String> {
        let mut kept = 0_u64;
        for name in &self.entry.security.capabilities {
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
        let groups: Vec<Gid> = self.entry.identity.groups.iter().copied().map(Gid::from_raw).collect();
        match nix::unistd::setgroups(&groups) {
            // In a user namespace of one user groups cannot be given up, and there is only that user's.
            Err(nix::Error::EPERM) if groups.is_empty() => {}
            other => other.map_err(step("set the groups"))?,
        }
        let (uid, gid) = (Uid::from_raw(self.entry.identity.uid), Gid::from_raw(self.entry.identity.gid));
        nix::unistd::setresgid(gid, gid, gid).map_err(step("set the group"))?;
        nix::unistd::setresuid(uid, uid, uid).map_err(step("set the user"))?;
        let ours = rustix::thread::capabilities(None).map_err(step("read capabilities"))?;
        // Other users than root have lost theirs with the change.
        let kept = CapabilitySet::from_bits_retain(kept) & ours.permitted;
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        rustix::thread::set_capabilities(None, sets).map_err(step("set capabilities"))?;
        if self.entry.security.no_new_privileges {
            nix::sys::prctl::set_no_new_privs().map_err(step("forbid new privileges"))?;
        }
        // Changing the user may have changed it.
        nix::sys::prctl::set_dumpable(false).map_err(step("make the process undumpable"))
    }
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
