//! Runs an engine's command.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::kind::EngineKind;
use crate::error::{OnError, RuntimeError};
use crate::supervise::signal::{FORWARDED, exit_status_code};

/// The exit code of engines that failed themselves, as opposed to the program they ran.
const ENGINE_FAILED: i32 = 125;

#[derive(Debug, Clone)]
pub(super) struct EngineClient {
    pub(super) kind: EngineKind,
    program: PathBuf,
}

impl EngineClient {
    /// Looks for the command in `PATH`; nothing is started.
    pub(super) fn search(kind: EngineKind) -> Option<Self> {
        let executable =
            |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
        let directories = std::env::var_os("PATH")?;
        let program = std::env::split_paths(&directories)
            .map(|directory| directory.join(kind.name()))
            .find(executable)?;
        Some(Self { kind, program })
    }

    pub(super) fn command(&self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args.into_iter().map(Into::into));
        command
    }

    /// The output of the command, whatever its exit code.
    pub(super) fn output(
        &self,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Output, RuntimeError> {
        self.command(args).stdin(Stdio::null()).output().when(self.cannot_run())
    }

    /// The same, or `None` if it takes longer than `limit`. For short output only.
    pub(super) fn output_within(
        &self,
        limit: Duration,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Option<Output>, RuntimeError> {
        let mut command = self.command(args);
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

    /// Runs a command with our own input and outputs, forwards signals to it, and returns its exit code. If the engine itself
    /// fails, which it has reported by then, that is an error.
    ///
    /// Signals are received by this thread, so other threads must block them.
    pub(super) fn run_attached(&self, command: Command, action: &'static str) -> Result<i32, RuntimeError> {
        let status = run_forwarding_signals(command).when(self.cannot_run())?;
        match exit_status_code(status) {
            ENGINE_FAILED => {
                let message = format!("{} failed with exit code {ENGINE_FAILED}", self.kind.name());
                Err(RuntimeError::system(action, io::Error::other(message)))
            }
            code => Ok(code),
        }
    }

    fn cannot_run(&self) -> &'static str {
        match self.kind {
            EngineKind::Docker => "cannot run docker",
            EngineKind::Podman => "cannot run podman",
        }
    }
}

fn handle(child: &Child) -> io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("the process has no PID"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Runs a command until it ends, and forwards signals to it, which it forwards to the container.
fn run_forwarding_signals(mut command: Command) -> io::Result<ExitStatus> {
    let set: SigSet = FORWARDED.into_iter().collect();
    let _mask = Mask { before: SigSet::thread_get_mask()? };
    // The child inherits the mask and must receive them.
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
        let [ended, _] = polled.map(|polled| polled.any().unwrap_or(false));
        if ended {
            return child.wait();
        }
        forward_signals(&mut signals, &handle);
    }
}

fn forward_signals(signals: &mut SignalFd, handle: &OwnedFd) {
    while let Ok(Some(info)) = signals.read_signal() {
        // Signals from the terminal reach the whole process group anyway.
        let sent_to_us_alone = info.ssi_code <= 0;
        let number = i32::try_from(info.ssi_signo).ok().and_then(rustix::process::Signal::from_named_raw);
        if let Some(signal) = number.filter(|_| sent_to_us_alone) {
            let _ = pidfd_send_signal(handle, signal);
        }
    }
}

/// Restores this thread's signal mask when dropped.
struct Mask {
    before: SigSet,
}

impl Drop for Mask {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

pub(super) fn stderr_summary(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default();
    if last.is_empty() {
        format!("exited with code {}", exit_status_code(output.status))
    } else {
        last.join("; ")
    }
}
