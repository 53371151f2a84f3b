//! The end of a group, asked for from outside.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::dir::{GroupDir, GroupLock};
use crate::error::RuntimeError;
use crate::home::Home;
use crate::status::process_began;

/// How often we look whether the supervisor has ended.
const LOOK: Duration = Duration::from_millis(10);

/// How much longer than its containers a supervisor may take.
const MARGIN: Duration = Duration::from_secs(10);

/// How long containers may take where nothing else was said.
const USUAL: Duration = Duration::from_secs(10);

/// Stops a group and removes everything of it, also where its supervisor is dead. Containers that do not end within
/// `seconds` are ended.
pub fn down(home: &Home, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError> {
    let dir = GroupDir::of(home, name);
    if !dir.path().is_dir() && dir.containers(home)?.is_empty() {
        return Err(RuntimeError::UnknownGroup(name.to_owned()));
    }
    let lock = stop(&dir, seconds)?;
    dir.remove(home, lock)
}

/// Ends the supervisor, in order if it lets itself be; then the group is ours.
fn stop(dir: &GroupDir, seconds: Option<u32>) -> Result<GroupLock, RuntimeError> {
    if let Some(lock) = dir.lock()? {
        return Ok(lock);
    }
    if let Some(seconds) = seconds {
        dir.set_grace(seconds)?;
    }
    let mut told = false;
    let patience = seconds.map_or(USUAL, |seconds| Duration::from_secs(seconds.into())) + MARGIN;
    let asked = Instant::now();
    let mut forced = false;
    loop {
        if let Some(lock) = dir.lock()? {
            return Ok(lock);
        }
        // One that has only just begun has not said who it is yet.
        if !told {
            told = tell(dir, Signal::SIGTERM)?;
        }
        if asked.elapsed() > patience && !forced {
            forced = true;
            // Its containers end with it, and what they leave is cleared away after this.
            tell(dir, Signal::SIGKILL)?;
        }
        thread::sleep(LOOK);
    }
}

/// Sends a signal to the supervisor, if it is known.
fn tell(dir: &GroupDir, signal: Signal) -> Result<bool, RuntimeError> {
    let Some(status) = dir.status()? else { return Ok(false) };
    let Ok(pid) = i32::try_from(status.supervisor) else { return Ok(false) };
    if process_began(pid) != status.supervisor_began {
        return Ok(false);
    }
    match kill(Pid::from_raw(pid), signal) {
        Ok(()) | Err(nix::Error::ESRCH) => Ok(true),
        Err(error) => Err(RuntimeError::system("cannot tell the supervisor to end", error)),
    }
}
