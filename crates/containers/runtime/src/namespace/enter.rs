//! Enters a running container and executes a program in it: the helper that [`crate::namespace::join`] starts.
//!
//! Its input contains nothing but what belongs to the container.

use std::convert::Infallible;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};

use cudock_confine::Capability;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Gid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets, ThreadNameSpaceType};
use serde::{Deserialize, Serialize};

use crate::container::config::{Rlimit, Seccomp, Security};
use crate::error::{RuntimeError, error_text};
use crate::namespace::reexec;
use crate::namespace::sys;
use crate::start::executor::{ProgramExecutor, tag_error};
use crate::start::limits;
use crate::start::seccomp;
use crate::start::user::Identity;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExecSpec {
    pub(crate) args: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) cwd: String,
    pub(crate) identity: Identity,
    /// The security settings without the devices, which name files of the host.
    pub(crate) security: Security,
    pub(crate) rlimits: Vec<Rlimit>,
    /// Whether the streams are a terminal, which becomes the controlling one.
    pub(crate) tty: bool,
}

/// The descriptors that the caller opened for the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Inherited {
    /// A pidfd of the container's first process.
    pub(crate) container: i32,
    pub(crate) namespaces: u32,
    pub(crate) groups: Vec<i32>,
    pub(crate) report_to: i32,
}

/// Enters the container that the caller has opened. Must run in a process with one thread, which exits afterwards.
pub fn enter(input: i32) -> Result<(), RuntimeError> {
    let (spec, inherited): (ExecSpec, Inherited) = reexec::inherited(input)?;
    // `join` closes all other descriptors at once, so nothing here may own one.
    let report_to = ManuallyDrop::new(reexec::take_over(inherited.report_to));
    let (report_to, outcome) = match Entering::new(&spec) {
        Ok(entering) => match entering.join(&inherited, report_to.as_fd()) {
            Ok(kept) => (kept, entering.fork_inside(kept)),
            Err(error) => (report_to.as_fd(), Err(error)),
        },
        Err(error) => (report_to.as_fd(), Err(error_text(&error))),
    };
    outcome.map_or_else(|error| report(report_to, 'e', &error), |pid| report(report_to, 'p', &pid));
    Ok(())
}

struct Entering<'e> {
    spec: &'e ExecSpec,
    program: ProgramExecutor,
}

impl<'e> Entering<'e> {
    fn new(spec: &'e ExecSpec) -> Result<Self, RuntimeError> {
        let program = ProgramExecutor {
            environment: spec.environment.clone(),
            cwd: spec.cwd.clone(),
            filter: seccomp::filter(&spec.security)?,
            size: None,
            late: false,
            instead: None,
            init: false,
            watcher: None,
        };
        Ok(Self { spec, program })
    }

    /// Joins cgroups and namespaces while the container cannot see this process yet. Returns the new descriptor for reports.
    fn join(&self, inherited: &Inherited, report_to: BorrowedFd<'_>) -> Result<BorrowedFd<'static>, String> {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(step("set the death signal"))?;
        nix::sys::prctl::set_dumpable(false).map_err(step("make the process undumpable"))?;
        rustix::thread::set_name(c"cudock:exec").map_err(step("set the name"))?;
        sys::new_session_keyring().map_err(step("create a session keyring"))?;
        for group in &inherited.groups {
            reexec::take_over(*group).write_all(b"0").map_err(step("join a cgroup"))?;
        }
        limits::apply(&self.spec.rlimits).map_err(|error| error_text(&error))?;
        let container = ManuallyDrop::new(reexec::take_over(inherited.container));
        let namespaces = ThreadNameSpaceType::from_bits_retain(inherited.namespaces);
        // This also changes root and working directory. The PID namespace applies to children only.
        rustix::thread::move_into_thread_name_spaces(container.as_fd(), namespaces)
            .map_err(step("join the namespaces"))?;
        sys::keep_as_third(report_to).map_err(step("close descriptors"))
    }

    /// Drops all privileges, starts the process inside and returns its PID.
    fn fork_inside(&self, report_to: BorrowedFd<'_>) -> Result<String, String> {
        // As in runc: the process may start in a directory that its user may not enter, and one that only its user may
        // enter, such as on a network file system, is entered as that user.
        let entered = self.program.enter_cwd();
        self.drop_privileges()?;
        let entered = entered.or_else(|_| self.program.enter_cwd());
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
        sys::restore_signals();
        SigSet::empty().thread_set_mask().map_err(step("unblock signals"))?;
        // A custom profile may deny calls that are still needed.
        let early = self.spec.security.seccomp == Seccomp::Default;
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

    /// The process in the container's PID namespace.
    fn become_program(&self, entered: Result<(), String>, filtered: bool) -> Result<Infallible, String> {
        nix::unistd::setsid().map_err(step("start a session"))?;
        if self.spec.tty {
            rustix::process::ioctl_tiocsctty(io::stdin()).map_err(step("take the terminal"))?;
        }
        // It must not outlive its caller, who reads its output.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(step("set the death signal"))?;
        // Only here is `/proc/self` what the program will see.
        entered.or_else(|_| self.program.enter_cwd())?;
        self.program.find(&self.spec.args)?;
        if !filtered {
            self.filter()?;
        }
        let program = self.spec.args.first().ok_or("no command to run")?;
        let (error, code) = self.program.run(program, &self.spec.args);
        Err(tag_error(code, &format!("{program}: {}", error.desc())))
    }

    fn filter(&self) -> Result<(), String> {
        self.program
            .filter
            .as_ref()
            .map_or(Ok(()), |filter| filter.install().map_err(|error| error_text(&error)))
    }

    /// Switches to the user, with the container's capabilities only.
    fn drop_privileges(&self) -> Result<(), String> {
        let mut kept = 0_u64;
        for name in &self.spec.security.capabilities {
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
                // Beyond the kernel's last capability.
                Err(_) => break,
            }
        }
        let _ = rustix::thread::clear_ambient_capability_set();
        let groups: Vec<Gid> = self.spec.identity.groups.iter().copied().map(Gid::from_raw).collect();
        match nix::unistd::setgroups(&groups) {
            // In a user namespace with one user, groups cannot be dropped.
            Err(nix::Error::EPERM) if groups.is_empty() => {}
            other => other.map_err(step("set the groups"))?,
        }
        let (uid, gid) = (Uid::from_raw(self.spec.identity.uid), Gid::from_raw(self.spec.identity.gid));
        nix::unistd::setresgid(gid, gid, gid).map_err(step("set the group"))?;
        nix::unistd::setresuid(uid, uid, uid).map_err(step("set the user"))?;
        let ours = rustix::thread::capabilities(None).map_err(step("read capabilities"))?;
        // Users other than root have lost theirs with the change.
        let kept = CapabilitySet::from_bits_retain(kept) & ours.permitted;
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        rustix::thread::set_capabilities(None, sets).map_err(step("set capabilities"))?;
        if self.spec.security.no_new_privileges {
            nix::sys::prctl::set_no_new_privs().map_err(step("forbid new privileges"))?;
        }
        // Changing the user may have reset it.
        nix::sys::prctl::set_dumpable(false).map_err(step("make the process undumpable"))
    }
}

/// Sends a message to the caller in one write.
fn report(to: BorrowedFd<'_>, kind: char, message: &str) {
    let message = format!("{kind}{}\0", message.replace('\0', " "));
    let limit = message.len().min(4096);
    // An error of writing it cannot be reported.
    let _ = rustix::io::write(to, message.as_bytes().get(..limit).unwrap_or_default());
}

fn step<E: std::fmt::Display>(step: &str) -> impl FnOnce(E) -> String {
    move |error| format!("cannot {step}: {error}")
}
