//! The last steps of our code inside a container: restore signals, install the seccomp filter, execute the program.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_base::text::printable;
use cudock_confine::seccomp::Filter;
use libcontainer::oci_spec::runtime::Spec;
use libcontainer::workload::{Executor, ExecutorError, ExecutorSetEnvsError, ExecutorValidationError};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{AccessFlags, access, execve};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::termios::Winsize;

use crate::error::RuntimeError;
use crate::namespace::sys;

#[derive(Clone)]
pub(crate) struct ProgramExecutor {
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) cwd: String,
    /// Whether the program and the working directory are checked from outside after all mounts, not by [`Executor::validate`].
    pub(crate) late: bool,
    pub(crate) size: Option<Winsize>,
    pub(crate) filter: Option<Filter>,
    /// A function to run instead of a program, in this process.
    pub(crate) instead: Option<fn() -> i32>,
    /// Whether this process stays as PID 1, with the program as its child.
    pub(crate) init: bool,
    /// A pidfd of the watcher, without which the container's first process must not wait for its start.
    pub(crate) watcher: Option<Arc<OwnedFd>>,
}

/// Delimits the exit code in a tagged error.
const MARK: char = '\u{1}';

impl Executor for ProgramExecutor {
    fn exec(&self, spec: &Spec) -> Result<(), ExecutorError> {
        sys::restore_signals();
        SigSet::empty().thread_set_mask().map_err(other)?;
        // A container must not outlive its watcher, which reads its output and restarts it.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(other)?;
        if let Some(size) = self.size {
            let _ = rustix::termios::tcsetwinsize(std::io::stdin(), size);
        }
        if self.late
            && let Err(error) = enter(&self.cwd)
        {
            eprintln!("cudock: the container cannot start in {}: {error}", printable(&self.cwd));
            std::process::exit(126);
        }
        // Independent of the caller's.
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
        // Not left to exec: `instead` may load the image's libraries into this process.
        sys::close_all_but_standard();
        if let Some(filter) = &self.filter {
            filter.install().map_err(|error| ExecutorError::Other(error.to_string()))?;
        }
        if let Some(instead) = self.instead {
            sys::replace_environment(&self.environment);
            std::process::exit(instead());
        }
        let args = arguments(spec).map_err(ExecutorError::Other)?;
        let program = args.first().ok_or(ExecutorError::InvalidArg)?;
        if self.init {
            crate::start::init::run(|| self.become_program(program, &args));
        }
        self.become_program(program, &args)
    }

    fn validate(&self, spec: &Spec) -> Result<(), ExecutorValidationError> {
        // From here on it waits to be started, and holds all that it has inherited, such as the container's lock.
        self.end_with_watcher();
        if self.late {
            return Ok(());
        }
        let invalid = ExecutorValidationError::ArgValidationError;
        self.enter_cwd().map_err(invalid)?;
        if self.instead.is_some() {
            return Ok(());
        }
        self.find(&arguments(spec).map_err(invalid)?).map_err(invalid)
    }

    fn setup_envs(&self, _: HashMap<String, String>) -> Result<(), ExecutorSetEnvsError> {
        // The environment is passed to execve and never written to a file.
        Ok(())
    }
}

impl ProgramExecutor {
    /// Ends this process with the watcher, or now if that has ended already.
    fn end_with_watcher(&self) {
        let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
        if let Some(watcher) = &self.watcher {
            let mut polled = [PollFd::new(watcher.as_fd(), PollFlags::POLLIN)];
            if matches!(poll(&mut polled, PollTimeout::ZERO), Ok(1..)) {
                std::process::exit(1);
            }
        }
    }

    /// Checks the working directory and the program, from a process in the container's mount namespace. Errors are tagged for
    /// [`parse_error`].
    pub(crate) fn check(&self, args: &[String]) -> Result<(), String> {
        self.enter_cwd()?;
        self.find(args)
    }

    pub(crate) fn enter_cwd(&self) -> Result<(), String> {
        enter(&self.cwd).map_err(|error| {
            let reason = match error {
                rustix::io::Errno::NOTDIR => "it is not a directory".to_owned(),
                error => error.to_string(),
            };
            tag_error(2, &format!("the container cannot start in {}: {reason}", self.cwd))
        })
    }

    pub(crate) fn find(&self, args: &[String]) -> Result<(), String> {
        let Some(program) = args.first() else {
            return Err(tag_error(127, "no command to run: add one after the image, which has none"));
        };
        if args.iter().any(|arg| arg.contains('\0')) {
            return Err(tag_error(2, "an argument contains a NUL byte"));
        }
        let candidates = self.candidates(program);
        if candidates.iter().any(|path| !path.is_dir() && access(path, AccessFlags::X_OK).is_ok()) {
            return Ok(());
        }
        Err(match candidates.iter().find(|path| path.exists()) {
            Some(path) if path.is_dir() => tag_error(126, &format!("{} is a directory", path.display())),
            Some(path) => tag_error(126, &format!("cannot execute {}: permission denied", path.display())),
            None if program.contains('/') => tag_error(127, &format!("{program} not found in the container")),
            None => tag_error(127, &format!("`{program}` not found in the container's PATH")),
        })
    }

    fn become_program(&self, program: &str, args: &[String]) -> ! {
        let (error, code) = self.run(program, args);
        // Errors can no longer be returned, so it goes to the program's standard error.
        eprintln!("cudock: {}: {}", printable(program), error.desc());
        std::process::exit(code)
    }

    pub(crate) fn run(&self, program: &str, args: &[String]) -> (Errno, i32) {
        let args: Vec<CString> = args.iter().filter_map(|arg| CString::new(arg.as_str()).ok()).collect();
        let environment: Vec<CString> = self
            .environment
            .iter()
            .filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok())
            .collect();
        let mut worst = Errno::ENOENT;
        for path in self.candidates(program) {
            let Ok(path) = CString::new(path.to_string_lossy().into_owned()) else { continue };
            match execve(&path, &args, &environment) {
                Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                Err(error) => worst = error,
                Ok(never) => match never {},
            }
        }
        (worst, if worst == Errno::ENOENT { 127 } else { 126 })
    }

    /// The files that a program's name may refer to, in order.
    fn candidates(&self, program: &str) -> Vec<PathBuf> {
        if program.contains('/') {
            return vec![PathBuf::from(program)];
        }
        let path = self.environment.iter().find(|(name, _)| name == "PATH");
        let directories = path.map_or("", |(_, value)| value.as_str()).split(':');
        directories
            .filter(|directory| !directory.is_empty())
            .map(|directory| Path::new(directory).join(program))
            .collect()
    }
}

pub(crate) fn tag_error(code: i32, text: &str) -> String {
    format!("{MARK}{code}{MARK}{text}{MARK}")
}

/// Changes to a directory of the container. Magic links of `/proc` lead out of it and are not followed. If the result is
/// still outside, the kernel's name of the directory does not begin with a slash.
fn enter(directory: &str) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat2(CWD, directory, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
    rustix::process::fchdir(directory)?;
    // Not glibc's function, which searches the path itself if the kernel returns `(unreachable)`.
    let reached = rustix::process::getcwd(Vec::new())?;
    if reached.as_bytes().first() == Some(&b'/') { Ok(()) } else { Err(rustix::io::Errno::ACCESS) }
}

fn arguments(spec: &Spec) -> Result<Vec<String>, String> {
    let process = spec.process().as_ref().ok_or("the specification has no process")?;
    Ok(process.args().clone().unwrap_or_default())
}

fn other(error: Errno) -> ExecutorError {
    ExecutorError::Other(error.desc().to_owned())
}

pub(crate) fn parse_error(text: &str) -> RuntimeError {
    let mut parts = text.split(MARK).skip(1);
    match (parts.next(), parts.next()) {
        (Some("127"), Some(message)) => RuntimeError::NotFound(message.to_owned()),
        (Some("126"), Some(message)) => RuntimeError::NotExecutable(message.to_owned()),
        (Some("2"), Some(message)) => RuntimeError::Request(message.to_owned()),
        _ => RuntimeError::Create(text.to_owned()),
    }
}
