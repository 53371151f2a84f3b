//! This program, started over: sealed, with one thread, and with what it is to do handed over in memory.
//!
//! What enters a container must not run from the file on disk, which a container could then write to
//! (CVE-2019-5736); must not have other threads (libcontainer forks); and must not find secrets in a file or on its
//! command line, where other users can read them.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use cudock_confine::seal;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{OnSystem, RuntimeError};
use crate::sys;

/// The option that names the descriptor of what is handed over.
pub const HANDED: &str = "--handed";

/// A command that starts this program over. What it needs stays open in it.
#[derive(Debug)]
pub struct Sealed {
    command: Command,
    _executable: OwnedFd,
    _handed: OwnedFd,
}

/// Starts this program over with other words, in a new process.
pub fn sealed_command(words: &[OsString], handed: &impl Serialize) -> Result<Sealed, RuntimeError> {
    let executable = sealed_executable().when("cannot seal our own program")?;
    let handed = hand_over(handed)?;
    let mut command = seal::command(&executable);
    for variable in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] {
        // libcontainer would hand that many of our descriptors to the container.
        command.env_remove(variable);
    }
    command.args(words).arg(HANDED).arg(handed.as_raw_fd().to_string());
    Ok(Sealed { command, _executable: executable, _handed: handed })
}

/// One that runs sealed already, as the supervisor of a group does, starts others from the same handle.
fn sealed_executable() -> std::io::Result<OwnedFd> {
    if seal::is_sealed()? { Ok(File::open("/proc/self/exe")?.into()) } else { seal::sealed_executable() }
}

/// Starts this program over with other words, in this process. Comes back only with the reason why not.
pub fn become_sealed(words: &[OsString], handed: &impl Serialize) -> Result<RuntimeError, RuntimeError> {
    Ok(sealed_command(words, handed)?.replace_this_process())
}

impl Sealed {
    /// Adds a word.
    #[must_use]
    pub fn arg(mut self, word: impl Into<OsString>) -> Self {
        self.command.arg(word.into());
        self
    }

    /// Puts it in a process group of its own, so that keys on our terminal do not reach it.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.command.process_group(0);
        self
    }

    /// Takes the environment and the path of the program away from it.
    #[must_use]
    pub(crate) fn anonymous(mut self) -> Self {
        self.command.env_clear().arg0("cudock");
        self
    }

    /// Starts it in this process. Comes back only with the reason why not.
    pub(crate) fn replace_this_process(mut self) -> RuntimeError {
        RuntimeError::system("cannot start our own program over", self.command.exec())
    }

    /// Starts it as a child of ours, with an input and outputs that are ours to choose.
    pub fn spawn(mut self, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> Result<Child, RuntimeError> {
        self.command
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .when("cannot start our own program over")
    }

    /// Starts it so that it goes on without us, with `ready` as the descriptor it answers on.
    pub fn spawn_detached(mut self, ready: &OwnedFd) -> Result<u32, RuntimeError> {
        fcntl_setfd(ready, FdFlags::empty()).when("cannot hand a pipe down")?;
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

/// Leaves the terminal and the process group of whoever started us, so that neither ends us.
pub fn leave_session() {
    // Fails only for the leader of a group, which has no terminal to lose that it did not choose.
    let _ = nix::unistd::setsid();
}

/// Makes this process end with the thread that started it. It is killed: asked, it would only ask its container, which
/// may not listen, and nobody would be left to insist.
pub fn end_with_parent() {
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
}

/// Lets signals reach this process that whoever started it has blocked.
pub fn unblock_signals() {
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
}

/// What was handed over by a descriptor.
pub fn inherited<T: DeserializeOwned>(descriptor: i32) -> Result<T, RuntimeError> {
    let mut file = take_over(descriptor);
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0)).when("cannot read what was handed over")?;
    file.read_to_end(&mut text).when("cannot read what was handed over")?;
    serde_json::from_slice(&text)
        .map_err(|source| RuntimeError::Damaged { path: "what was handed over".into(), source })
}

/// A descriptor that was handed to this process by number, for this process alone.
pub fn take_over(descriptor: i32) -> File {
    let owned = sys::own(descriptor);
    let _ = fcntl_setfd(&owned, FdFlags::CLOEXEC);
    File::from(owned)
}

fn hand_over(value: &impl Serialize) -> Result<OwnedFd, RuntimeError> {
    let text = serde_json::to_vec(value)
        .map_err(|source| RuntimeError::Damaged { path: "what is handed over".into(), source })?;
    // It must survive the exec, and this is a process that starts nothing else.
    let memory = memfd_create("handed", MemfdFlags::empty()).when("cannot make a file in memory")?;
    let mut file = File::from(memory);
    file.write_all(&text).when("cannot write to memory")?;
    Ok(file.into())
}

/// Between the parts of an answer.
const BREAK: char = '\u{1f}';

/// What went wrong, as a watcher says it to whoever started it.
pub(crate) fn report(error: &RuntimeError) -> String {
    let hint = error.hint().unwrap_or_default();
    format!("{}{BREAK}{}{BREAK}{hint}", crate::exit_code(error), crate::launch::text(error))
}

/// The answer of a watcher: that its container runs, or what went wrong.
pub fn reported(answer: &str) -> Result<(), RuntimeError> {
    if answer == "running" {
        return Ok(());
    }
    let mut parts = answer.split(BREAK);
    let code = parts.next().and_then(|code| code.parse().ok());
    match (code, parts.next()) {
        (Some(code), Some(text)) => {
            let hint = parts.next().filter(|hint| !hint.is_empty()).map(str::to_owned);
            Err(RuntimeError::Reported { code, text: text.to_owned(), hint })
        }
        _ => Err(RuntimeError::said("the watcher ended before the container ran")),
    }
}
