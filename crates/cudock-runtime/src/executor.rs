//! The last steps inside the container, in a process that is still ours: give back what this program changed about
//! signals, take the right to make most system calls away, and become the user's program.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};

use cudock_confine::seccomp::Filter;
use libcontainer::oci_spec::runtime::Spec;
use libcontainer::workload::{Executor, ExecutorError, ExecutorSetEnvsError, ExecutorValidationError};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{AccessFlags, access, execve};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::termios::Winsize;

use crate::error::RuntimeError;
use crate::sys;

/// Becomes the user's program.
#[derive(Clone)]
pub(crate) struct Become {
    /// The whole environment.
    pub(crate) environment: Vec<(String, String)>,
    /// Where it starts.
    pub(crate) cwd: String,
    /// Whether the program and the directory to start in are looked for by our other side, and gone to at the last moment.
    pub(crate) late: bool,
    /// How large its terminal is.
    pub(crate) size: Option<Winsize>,
    /// Which system calls the program may make; all without it.
    pub(crate) filter: Option<Filter>,
    /// What is done in place of a program: it runs in our own process, inside the container, and ends it.
    pub(crate) instead: Option<fn() -> i32>,
    /// Whether this process stays as PID 1 and the program is its child.
    pub(crate) init: bool,
}

/// Between these, an error tells our other side which exit code it stands for.
const MARK: char = '\u{1}';

impl Executor for Become {
    fn exec(&self, spec: &Spec) -> Result<(), ExecutorError> {
        sys::restore_signals();
        SigSet::empty().thread_set_mask().map_err(other)?;
        // A container does not outlive its watcher: without one nobody would read what it writes or restart it.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(other)?;
        if let Some(size) = self.size {
            let _ = rustix::termios::tcsetwinsize(std::io::stdin(), size);
        }
        if self.late
            && let Err(error) = enter(&self.cwd)
        {
            eprintln!("cudock: the container cannot start in {}: {error}", self.cwd);
            std::process::exit(126);
        }
        // Not the caller's: what it makes must not depend on who started it.
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
        // What is closed when a program is executed must be closed for our own code as well: the image's libraries may
        // run in it.
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
            crate::init::run(|| self.become_program(program, &args));
        }
        self.become_program(program, &args)
    }

    fn validate(&self, spec: &Spec) -> Result<(), ExecutorValidationError> {
        if self.late {
            return Ok(());
        }
        let wrong = ExecutorValidationError::ArgValidationError;
        enter(&self.cwd).map_err(|error| wrong(self.cannot_start_there(error)))?;
        if self.instead.is_some() {
            return Ok(());
        }
        self.find(&arguments(spec).map_err(wrong)?).map_err(wrong)
    }

    fn setup_envs(&self, _: HashMap<String, String>) -> Result<(), ExecutorSetEnvsError> {
        // Ours is handed to the program when it is executed, and never was in a file.
        Ok(())
    }
}

impl Become {
    /// Looks for the directory to start in and the program, from a process that sees the container's root as its own. What
    /// is wrong, in words that [`understood`] reads.
    pub(crate) fn look(&self, args: &[String]) -> Result<(), String> {
        self.enter_cwd()?;
        self.find(args)
    }

    /// Goes to the directory to start in.
    pub(crate) fn enter_cwd(&self) -> Result<(), String> {
        enter(&self.cwd).map_err(|error| self.cannot_start_there(error))
    }

    fn cannot_start_there(&self, error: rustix::io::Errno) -> String {
        let why = if error == rustix::io::Errno::NOTDIR {
            "it is not a directory".to_owned()
        } else {
            error.to_string()
        };
        marked(2, &format!("the container cannot start in {}: {why}", self.cwd))
    }

    /// Looks for the program.
    pub(crate) fn find(&self, args: &[String]) -> Result<(), String> {
        let Some(program) = args.first() else {
            return Err(marked(127, "no command to run: the image names none, and none was given"));
        };
        if args.iter().any(|arg| arg.contains('\0')) {
            return Err(marked(2, "an argument holds a byte that ends it"));
        }
        let candidates = self.candidates(program);
        if candidates.iter().any(|path| !path.is_dir() && access(path, AccessFlags::X_OK).is_ok()) {
            return Ok(());
        }
        Err(match candidates.iter().find(|path| path.exists()) {
            Some(path) if path.is_dir() => marked(126, &format!("{} is a directory", path.display())),
            Some(path) => marked(126, &format!("{} may not be executed by this user", path.display())),
            None if program.contains('/') => marked(127, &format!("there is no {program} in the container")),
            None => marked(127, &format!("there is no `{program}` in the container's PATH")),
        })
    }

    fn become_program(&self, program: &str, args: &[String]) -> ! {
        let (error, code) = self.run(program, args);
        // Nobody listens for errors any more: say it where the program's own would be said.
        eprintln!("cudock: {program}: {}", error.desc());
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

    /// The files a program's name may stand for, in order.
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

/// An error with the exit code it stands for.
pub(crate) fn marked(code: i32, text: &str) -> String {
    format!("{MARK}{code}{MARK}{text}{MARK}")
}

/// Goes to a directory of the container. Links of `/proc` lead out of it and are not followed; and where a directory was
/// reached that is outside all the same, the kernel knows: what it calls the directory does not begin at the root.
fn enter(directory: &str) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat2(CWD, directory, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
    rustix::process::fchdir(directory)?;
    // Not glibc's function, which looks for a way of its own where the kernel's answer is `(unreachable)`.
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

/// What an error from inside the container stands for.
pub(crate) fn understood(text: &str) -> RuntimeError {
    let mut parts = text.split(MARK).skip(1);
    match (parts.next(), parts.next()) {
        (Some("127"), Some(message)) => RuntimeError::NotFound(message.to_owned()),
        (Some("126"), Some(message)) => RuntimeError::NotExecutable(message.to_owned()),
        (Some("2"), Some(message)) => RuntimeError::Request(message.to_owned()),
        _ => RuntimeError::Create(text.to_owned()),
    }
}
