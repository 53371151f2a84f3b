//! Re-executes this program: sealed, with one thread, and with its input passed in memory.
//!
//! A process that enters a container must not run from the file on disk, which the container could then write to
//! (CVE-2019-5736), must not have other threads (libcontainer forks), and must not get secrets from a file or its command
//! line, where other users can read them.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use cudock_base::Report as _;
use cudock_confine::seal;
use rustix::io::{FdFlags, fcntl_setfd};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{OnError, RuntimeError, error_text, exit_code};
use crate::namespace::memfd::MemoryFile;
use crate::namespace::sys;

/// The option with the descriptor of the input.
const HANDED: &str = "--handed";

/// A command that re-executes this program. Holds the descriptors that it needs.
#[derive(Debug)]
pub struct SealedCommand {
    command: Command,
    _executable: OwnedFd,
    _input: MemoryFile,
}

/// A command that re-executes this program with these arguments and an input in memory.
pub fn sealed_command(args: &[OsString], input: &impl Serialize) -> Result<SealedCommand, RuntimeError> {
    let executable = sealed_executable().when("cannot seal our own executable")?;
    let input = serde_json::to_vec(input)
        .map_err(|source| RuntimeError::Damaged { path: "the input".into(), source })?;
    let input = MemoryFile::new(&input)?;
    let mut command = seal::command(&executable);
    for variable in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] {
        // libcontainer would pass that many of our descriptors to the container.
        command.env_remove(variable);
    }
    command.args(args).arg(HANDED).arg(input.descriptor().to_string());
    Ok(SealedCommand { command, _executable: executable, _input: input })
}

/// A process that is sealed already, such as the supervisor of a group, reuses its handle.
fn sealed_executable() -> std::io::Result<OwnedFd> {
    if seal::is_sealed()? { Ok(File::open("/proc/self/exe")?.into()) } else { seal::sealed_executable() }
}

/// Re-executes this program in this process. Returns only with an error.
pub fn become_sealed(args: &[OsString], input: &impl Serialize) -> Result<RuntimeError, RuntimeError> {
    Ok(sealed_command(args, input)?.replace_this_process())
}

impl SealedCommand {
    /// Puts it in a process group of its own, so that signals from our terminal do not reach it.
    #[must_use]
    pub fn own_process_group(mut self) -> Self {
        self.command.process_group(0);
        self
    }

    /// Removes the environment and the path of the program.
    #[must_use]
    pub(crate) fn without_environment(mut self) -> Self {
        self.command.env_clear().arg0("cudock");
        self
    }

    /// Executes it in this process. Returns only with an error.
    pub(crate) fn replace_this_process(mut self) -> RuntimeError {
        RuntimeError::system("cannot re-execute cudock", self.command.exec())
    }

    pub fn spawn(mut self, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> Result<Child, RuntimeError> {
        self.command.stdin(stdin).stdout(stdout).stderr(stderr).spawn().when("cannot re-execute cudock")
    }

    /// Starts it detached; it reports its start on `ready`.
    pub fn spawn_detached(mut self, ready: &OwnedFd) -> Result<u32, RuntimeError> {
        fcntl_setfd(ready, FdFlags::empty()).when("cannot pass on a pipe")?;
        self.command
            .arg("--ready")
            .arg(ready.as_raw_fd().to_string())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = self.command.spawn().when("cannot start the watcher")?;
        Ok(child.id())
    }
}

/// Leaves the session of the caller, so that its end does not affect this process.
pub fn leave_session() {
    // Fails only for the leader of a process group.
    let _ = nix::unistd::setsid();
}

/// Kills this process when the thread that started it ends. SIGTERM would only be forwarded to the container, which may
/// ignore it.
pub fn end_with_parent() {
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
}

pub fn inherited<T: DeserializeOwned>(descriptor: i32) -> Result<T, RuntimeError> {
    let mut file = take_over(descriptor);
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0)).when("cannot read the input")?;
    file.read_to_end(&mut text).when("cannot read the input")?;
    serde_json::from_slice(&text).map_err(|source| RuntimeError::Damaged { path: "the input".into(), source })
}

/// Takes ownership of a descriptor that was passed to this process by number.
pub fn take_over(descriptor: i32) -> File {
    let owned = sys::own(descriptor);
    let _ = fcntl_setfd(&owned, FdFlags::CLOEXEC);
    File::from(owned)
}

const SEPARATOR: char = '\u{1f}';

pub(crate) fn format_error(error: &RuntimeError) -> String {
    let hint = error.hints().join("; ");
    format!("{}{SEPARATOR}{}{SEPARATOR}{hint}", exit_code(error), error_text(error))
}

/// Reports the start, once, to the process that waits for it.
pub(crate) fn reply(to: &mut Option<File>, reply: &str) {
    if let Some(mut to) = to.take() {
        let _ = to.write_all(reply.as_bytes());
    }
}

/// Parses the reply of a watcher: its container runs, or an error.
pub fn parse_reply(reply: &str) -> Result<(), RuntimeError> {
    if reply == "running" {
        return Ok(());
    }
    let mut parts = reply.split(SEPARATOR);
    let code = parts.next().and_then(|code| code.parse().ok());
    match (code, parts.next()) {
        (Some(code), Some(text)) => {
            let hint = parts.next().filter(|hint| !hint.is_empty()).map(str::to_owned);
            Err(RuntimeError::Reported { code, text: text.to_owned(), hint })
        }
        _ => Err(RuntimeError::reported("the watcher exited before the container started")),
    }
}
