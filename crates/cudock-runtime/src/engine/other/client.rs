//! An engine's command: asked, and stayed with.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::words::Kind;
use crate::error::{OnSystem, RuntimeError};

/// The exit code with which engines say that they failed, and not the program they were to run.
const ENGINE_FAILED: i32 = 125;

/// Signals that are passed on to the engine's command, which passes them on to the container.
const PASSED: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// An engine's command on this machine.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) kind: Kind,
    program: PathBuf,
}

impl Client {
    /// The command where `PATH` leads to it; nothing is started.
    pub(super) fn search(kind: Kind) -> Option<Self> {
        let runs =
            |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
        let directories = std::env::var_os("PATH")?;
        let program =
            std::env::split_paths(&directories).map(|directory| directory.join(kind.name())).find(runs)?;
        Some(Self { kind, program })
    }

    pub(super) fn command(&self, words: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words.into_iter().map(Into::into));
        command
    }

    /// What the command says, whatever its exit code.
    pub(super) fn ask(
        &self,
        words: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Output, RuntimeError> {
        self.command(words).stdin(Stdio::null()).output().when(self.cannot_run())
    }

    /// The same, but none where it takes longer than `limit`. For short answers only.
    pub(super) fn ask_within(
        &self,
        limit: Duration,
        words: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Option<Output>, RuntimeError> {
        let mut command = self.command(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().when(self.cannot_run())?;
        let limit = u16::try_from(limit.as_millis()).unwrap_or(u16::MAX);
        let ended = handle(&child).and_then(|handle| {
            let mut polled = [PollFd::new(handle.as_fd(), PollFlags::POLLIN)];
            Ok(poll(&mut polled, PollTimeout::from(limit))? > 0)
        });
        if ended.unwrap_or(false) {
            return child.wait_with_output().map(Some).when(self.cannot_run());
        }
        let _ = child.kill();
        let _ = child.wait();
        Ok(None)
    }

    /// Runs a command with our own input and outputs, and passes signals on. What it ended with; that the engine
    /// failed is an error, and why it has said itself by then.
    ///
    /// Signals are heard by this thread, so others, if there are any, must block those that are passed on.
    pub(super) fn attend(&self, command: Command, doing: &'static str) -> Result<i32, RuntimeError> {
        let status = stay_with(command).when(self.cannot_run())?;
        match code(status) {
            ENGINE_FAILED => {
                let said = format!("{} failed, and said why", self.kind.name());
                Err(RuntimeError::system(doing, io::Error::other(said)))
            }
            code => Ok(code),
        }
    }

    fn cannot_run(&self) -> &'static str {
        match self.kind {
            Kind::Docker => "cannot run docker",
            Kind::Podman => "cannot run podman",
        }
    }
}

/// 128 and the signal's number where a signal ended it.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

fn handle(child: &Child) -> io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("a process without a number"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Starts a command and stays with it until it ends.
fn stay_with(mut command: Command) -> io::Result<ExitStatus> {
    let set: SigSet = PASSED.into_iter().collect();
    let _mask = Mask { before: SigSet::thread_get_mask()? };
    // What is blocked here would be blocked in the child, too, and it is to hear them.
    set.thread_unblock()?;
    let mut child = command.spawn()?;
    set.thread_block()?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    let mut signals = SignalFd::with_flags(&set, flags)?;
    let handle = handle(&child)?;
    loop {
        let mut polled =
            [PollFd::new(handle.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [ended, _] = polled.map(|one| one.any().unwrap_or(false));
        if ended {
            return child.wait();
        }
        pass_on(&mut signals, &handle);
    }
}

fn pass_on(signals: &mut SignalFd, handle: &OwnedFd) {
    while let Ok(Some(info)) = signals.read_signal() {
        // What the kernel sends for a key or a terminal that is gone, it sends to the whole group.
        let sent_to_us_alone = info.ssi_code <= 0;
        let number = i32::try_from(info.ssi_signo).ok().and_then(rustix::process::Signal::from_named_raw);
        if let Some(signal) = number.filter(|_| sent_to_us_alone) {
            let _ = pidfd_send_signal(handle, signal);
        }
    }
}

/// Puts this thread's mask of signals back when it goes.
struct Mask {
    before: SigSet,
}

impl Drop for Mask {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

/// The last lines of what a command complained of, as one.
pub(super) fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default();
    if last.is_empty() { format!("it ended with {}", code(output.status)) } else { last.join("; ") }
}
