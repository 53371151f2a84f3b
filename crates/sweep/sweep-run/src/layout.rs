//! The files of a sweep: `.cudock/sweeps/NAME` in the project's directory.

use std::fs;
use std::path::{Path, PathBuf};

use cudock_base::FileError;
use cudock_sweep::failure_logs::{FailureLogs, LogTail};
use cudock_sweep::{Sweep, Trial, TrialId, TrialStatus};

use crate::local::trial_log::last_lines;

/// The directory of one sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepDir {
    path: PathBuf,
}

impl SweepDir {
    /// The directory of a sweep of this name, which need not exist.
    pub fn of(project: &Path, name: &str) -> Self {
        let project = std::path::absolute(project).unwrap_or_else(|_| project.to_owned());
        Self { path: project.join(".cudock/sweeps").join(name) }
    }

    /// Creates it, and keeps what is in it out of version control.
    pub(crate) fn create(&self) -> Result<(), FileError> {
        let requests = self.requests();
        fs::create_dir_all(&requests).map_err(FileError::at("create directory", &requests))?;
        if let Some(ignore) = self.path.ancestors().nth(2).map(|directory| directory.join(".gitignore"))
            && !ignore.exists()
        {
            fs::write(&ignore, "*\n").map_err(FileError::at("write", &ignore))?;
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// The directory of a trial.
    pub fn trial(&self, trial: TrialId) -> TrialDir {
        TrialDir { path: self.trials().join(trial.to_string()) }
    }

    pub(crate) fn trials(&self) -> PathBuf {
        self.path.join("trials")
    }

    /// The ends of the logs of the trials that failed.
    pub fn failure_logs(&self, sweep: &Sweep) -> FailureLogs {
        sweep.trials().iter().filter_map(|trial| Some((trial.id, self.failure_log(trial)?))).collect()
    }

    /// The end of the log of a trial, if it failed and wrote something.
    pub fn failure_log(&self, trial: &Trial) -> Option<LogTail> {
        let attempt = trial.attempt().filter(|_| trial.status == TrialStatus::Failed)?;
        let path = self.trial(trial.id).log(attempt.number);
        let lines = last_lines(&path).ok()?;
        LogTail::new(&path, lines)
    }

    /// Workers hold a shared lock on this file as long as they live.
    pub(crate) fn workers_lock(&self) -> PathBuf {
        self.path.join("workers.lock")
    }

    /// Requests of other commands to a running sweep.
    pub(crate) fn requests(&self) -> PathBuf {
        self.path.join("requests")
    }
}

/// The directory of one trial. Checkpoints and artifacts are shared by its attempts, so that one can continue where
/// another was killed; the other files belong to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialDir {
    path: PathBuf,
}

impl TrialDir {
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn parameters(&self) -> PathBuf {
        self.path.join("parameters.json")
    }

    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    pub(crate) fn artifacts(&self) -> PathBuf {
        self.path.join("artifacts")
    }

    /// The output of an attempt.
    pub fn log(&self, attempt: u32) -> PathBuf {
        self.path.join(format!("attempt-{attempt}.log"))
    }

    /// A worker's events of an attempt, one JSON object per line: its reports, and finally how it
    /// ended.
    pub fn events(&self, attempt: u32) -> PathBuf {
        self.path.join(format!("attempt-{attempt}.jsonl"))
    }
}
