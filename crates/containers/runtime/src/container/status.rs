//! The status of a container, as its watcher writes it.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use cudock_base::Timestamp;
use cudock_base::files::{FileLock, remove_optional};
use rustix::io::{FdFlags, fcntl_setfd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::container::home::ContainerDir;
use crate::container::state_file::{is_full, read_json, write_json};
use crate::error::{OnError, RuntimeError};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerStatus {
    pub state: ContainerState,
    pub watcher: Option<u32>,
    /// The PID of its first process, on the host.
    pub pid: Option<i32>,
    /// When that process started, in clock ticks since boot, since PIDs are reused.
    pub pid_began: Option<u64>,
    /// When it was last started, in milliseconds since 1970.
    pub started: Option<u64>,
    pub finished: Option<u64>,
    /// Its exit code; 128 plus the signal's number if a signal ended it.
    pub exit_code: Option<i32>,
    pub out_of_memory: bool,
    pub restarts: u32,
    /// Why it did not start, or what failed later.
    pub error: Option<String>,
    /// Whether its readiness probe, if it has one, succeeds.
    pub ready: Option<bool>,
    pub ports: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerState {
    /// Its directory exists; nothing runs yet.
    #[default]
    Created,
    Running,
    /// It exited and waits for its restart.
    Restarting,
    Exited,
    /// Its watcher was killed, and it with it; the exit code is unknown.
    Lost,
}

impl ContainerState {
    /// Whether it runs or will run by itself.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Created | Self::Running | Self::Restarting)
    }
}

/// The name in the status file.
impl fmt::Display for ContainerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The lock on a container that is being started, runs, or is changed.
#[derive(Debug)]
pub struct Watch {
    lock: FileLock,
}

impl Watch {
    /// Takes over the lock that this process has inherited.
    pub fn inherited(descriptor: File) -> Self {
        Self { lock: descriptor.into() }
    }

    /// Lets the next program inherit the lock, and returns its descriptor.
    pub(crate) fn hand_down(&self) -> Result<i32, RuntimeError> {
        let lock = self.lock.as_fd();
        fcntl_setfd(lock, FdFlags::empty()).when("cannot pass on the container's lock")?;
        Ok(lock.as_raw_fd())
    }

    /// Leaves it locked by a watcher that has inherited it.
    pub(crate) fn leave_to_watcher(&mut self) {
        self.lock.leave_to_copies();
    }
}

/// Attempts to lock a container: a process that only checks whether it is locked also holds the
/// lock for a moment.
const LOCK_TRIES: u32 = 20;

impl ContainerDir {
    /// Locks the container; `None` if another process has the lock.
    pub fn watch(&self) -> Result<Option<Watch>, RuntimeError> {
        let path = self.watch_lock();
        // Locking needs neither write permission nor disk space.
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(_) => File::options().create(true).append(true).open(&path).on("cannot open", &path)?,
        };
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Watch { lock: file.into() })),
                Err(TryLockError::WouldBlock) if file.try_lock_shared().is_err() => return Ok(None),
                Err(TryLockError::WouldBlock) => file.unlock().on("cannot unlock", &path)?,
                Err(TryLockError::Error(error)) => {
                    return Err(RuntimeError::file("cannot lock", path, error));
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(None)
    }

    pub fn is_watched(&self) -> Result<bool, RuntimeError> {
        let path = self.watch_lock();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(RuntimeError::file("cannot open", path, error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(RuntimeError::file("cannot lock", path, error)),
        }
    }

    pub fn wait_unwatched(&self) -> Result<(), RuntimeError> {
        let path = self.watch_lock();
        match File::open(&path) {
            Ok(file) => file.lock_shared().on("cannot lock", &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(RuntimeError::file("cannot open", path, error)),
        }
    }

    /// The last status that the watcher wrote; what can be found out without it if the file is damaged.
    pub fn status(&self) -> Result<ContainerStatus, RuntimeError> {
        match read_json(&self.status_file()) {
            Err(error) if error.is_missing() => Ok(ContainerStatus::default()),
            Err(RuntimeError::Damaged { .. }) => self.status_without_file(),
            other => other,
        }
    }

    pub fn set_status(&self, status: &ContainerStatus) -> Result<(), RuntimeError> {
        write_json(&self.status_file(), status)
    }

    /// Marks the container as stopping, so that its watcher does not restart it.
    pub fn mark_stopping(&self) -> Result<(), RuntimeError> {
        let path = self.stop_mark();
        match fs::write(&path, []) {
            // On a full disk the container still gets the signal.
            Err(error) if is_full(&error) => Ok(()),
            other => other.on("cannot write", &path),
        }
    }

    pub(crate) fn clear_stopping(&self) -> Result<(), RuntimeError> {
        let path = self.stop_mark();
        remove_optional(&path).on("cannot remove", &path)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop_mark().exists()
    }
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    Timestamp::now().millis().unwrap_or_default()
}

/// When a process started, in clock ticks since boot; `None` if it does not exist.
pub fn process_began(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, so count from its end.
    let after_name = stat.rsplit_once(") ")?.1;
    after_name.split(' ').nth(19)?.parse().ok()
}
