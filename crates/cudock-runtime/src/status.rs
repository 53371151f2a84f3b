//! How a container is: what its watcher last wrote, and whether that can still be true.

use std::fs;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{OnFile, RuntimeError};
use crate::home::{ContainerDir, is_full, read_json, write_json};

/// How a container is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// In which part of its life.
    pub state: State,
    /// The process that watches it.
    pub watcher: Option<u32>,
    /// Its first process, as this machine numbers it.
    pub pid: Option<i32>,
    /// When that process began, in ticks since the machine did: a number may come to another process.
    pub pid_began: Option<u64>,
    /// When it was last started, in milliseconds since 1970.
    pub started: Option<u64>,
    /// When it last ended.
    pub finished: Option<u64>,
    /// What it ended with: 128 and the signal's number where a signal ended it.
    pub exit_code: Option<i32>,
    /// Whether it was ended for using more memory than it may.
    pub out_of_memory: bool,
    /// How often it was started again.
    pub restarts: u32,
    /// Why it did not start, or what went wrong after.
    pub error: Option<String>,
    /// Whether its readiness probe, if it has one, says yes.
    pub ready: Option<bool>,
    /// Ports of this machine that lead into it, as they came out.
    pub ports: Vec<String>,
}

/// The part of its life a container is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its directory is there; nothing runs yet.
    #[default]
    Created,
    /// It runs.
    Running,
    /// It ended and waits to be started again.
    Restarting,
    /// It ended.
    Exited,
    /// Its watcher died. It was ended with it, and how it came out is not known.
    Lost,
}

impl State {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Restarting => "restarting",
            Self::Exited => "exited",
            Self::Lost => "lost",
        }
    }

    /// Whether it will run on without anyone doing anything.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Created | Self::Running | Self::Restarting)
    }
}

/// The hold a watcher has on its container.
#[derive(Debug)]
pub struct Watch {
    _file: fs::File,
}

impl ContainerDir {
    /// Takes hold of the container; none where someone has it.
    pub fn watch(&self) -> Result<Option<Watch>, RuntimeError> {
        let path = self.watch_lock();
        // A lock needs no right to write, and no space.
        let file = match fs::File::open(&path) {
            Ok(file) => file,
            Err(_) => fs::File::options().create(true).append(true).open(&path).on("cannot open", &path)?,
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(Watch { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(RuntimeError::file("cannot lock", path, error)),
        }
    }

    /// Whether someone watches it.
    pub fn is_watched(&self) -> Result<bool, RuntimeError> {
        Ok(self.watch()?.is_none())
    }

    /// Waits until nobody watches it.
    pub fn wait_unwatched(&self) -> Result<(), RuntimeError> {
        let path = self.watch_lock();
        match fs::File::open(&path) {
            Ok(file) => file.lock_shared().on("cannot lock", &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(RuntimeError::file("cannot open", path, error)),
        }
    }

    /// What the watcher last wrote.
    pub fn status(&self) -> Result<Status, RuntimeError> {
        match read_json(&self.status_file()) {
            Err(RuntimeError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(Status::default())
            }
            // Half written when the power went: the container went with it.
            Err(RuntimeError::Damaged { .. }) => Ok(Status {
                state: State::Lost,
                error: Some("its status file is damaged".to_owned()),
                ..Status::default()
            }),
            other => other,
        }
    }

    /// Writes it down.
    pub fn set_status(&self, status: &Status) -> Result<(), RuntimeError> {
        write_json(&self.status_file(), status)
    }

    /// Notes that the container is meant to end, so that its watcher does not start it again.
    pub fn ask_to_stop(&self) -> Result<(), RuntimeError> {
        let path = self.stop_mark();
        match fs::write(&path, []) {
            // Without room for the mark the container is still told to end.
            Err(error) if is_full(&error) => Ok(()),
            other => other.on("cannot write", &path),
        }
    }

    /// Forgets that the container was meant to end, so that it can be started again.
    pub(crate) fn allow_to_start(&self) -> Result<(), RuntimeError> {
        let path = self.stop_mark();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(RuntimeError::file("cannot remove", path, error))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn is_asked_to_stop(&self) -> bool {
        self.stop_mark().exists()
    }
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// When a process began, in ticks since the machine did; none where there is no such process.
pub fn process_began(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from its end.
    let after_name = stat.rsplit_once(") ")?.1;
    after_name.split(' ').nth(19)?.parse().ok()
}
