//! Stops and removes a group.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::dir::{GroupDir, GroupLock};
use crate::container::home::Home;
use crate::container::status::process_began;
use crate::error::RuntimeError;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How much longer than its containers a supervisor may take to exit.
const MARGIN: Duration = Duration::from_secs(10);

/// How long containers may take to stop by default.
const DEFAULT_GRACE: Duration = Duration::from_secs(10);

/// Stops a group and removes it, even if its supervisor is dead. Containers that do not stop within `seconds` are killed.
pub fn down(home: &Home, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError> {
    let dir = GroupDir::of(home, name);
    if !dir.path().is_dir() && dir.containers(home)?.is_empty() {
        return Err(RuntimeError::UnknownGroup(name.to_owned()));
    }
    let lock = stop(&dir, seconds)?;
    dir.remove(home, lock)
}

/// Stops the supervisor, by force if necessary, and locks the group.
fn stop(dir: &GroupDir, seconds: Option<u32>) -> Result<GroupLock, RuntimeError> {
    if let Some(lock) = dir.lock()? {
        return Ok(lock);
    }
    if let Some(seconds) = seconds {
        dir.set_grace(seconds)?;
    }
    let mut signaled = false;
    let timeout = seconds.map_or(DEFAULT_GRACE, |seconds| Duration::from_secs(seconds.into())) + MARGIN;
    let began = Instant::now();
    let mut killed = false;
    loop {
        if let Some(lock) = dir.lock()? {
            return Ok(lock);
        }
        // A supervisor that has just started has not written its PID yet.
        if !signaled {
            signaled = send_signal(dir, Signal::SIGTERM)?;
        }
        if began.elapsed() > timeout && !killed {
            killed = true;
            // Its containers are killed with it, and removed afterwards.
            send_signal(dir, Signal::SIGKILL)?;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Sends a signal to the supervisor. Returns whether its PID is known.
fn send_signal(dir: &GroupDir, signal: Signal) -> Result<bool, RuntimeError> {
    let Some(status) = dir.status()? else { return Ok(false) };
    // Zero is a supervisor that is not known: every process of this group.
    let Some(pid) = i32::try_from(status.supervisor).ok().filter(|pid| *pid > 0) else { return Ok(false) };
    if process_began(pid) != status.supervisor_began {
        return Ok(false);
    }
    match kill(Pid::from_raw(pid), signal) {
        Ok(()) | Err(nix::Error::ESRCH) => Ok(true),
        Err(error) => Err(RuntimeError::system("cannot signal the supervisor", error)),
    }
}
