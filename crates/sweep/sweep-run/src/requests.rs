//! Requests of commands to a sweep that another process runs: files in the sweep's directory.
//!
//! A request can be applied twice without harm, because the sweep may be killed after it has applied one and before it
//! has removed its file. So trials are not added: their number is raised to what it should be.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cudock_base::{FileError, Timestamp, UsageError};
use cudock_sweep::{Event, StopReason, Sweep, Trial, TrialId};
use serde::{Deserialize, Serialize};

use crate::layout::SweepDir;

/// Time within which a running sweep must carry out a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest request.
const MAX_REQUEST: u64 = 4096;

/// A request to a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepRequest {
    /// Start no more trials.
    Pause,
    /// Stop all trials, and end.
    Cancel,
    /// Stop one trial.
    Stop { trial: TrialId },
    /// Raise the number of trials to this.
    Raise { trials: u64 },
}

impl SweepRequest {
    /// The event that carries it out; none if that is done already.
    pub(crate) fn event(self, sweep: &Sweep) -> Result<Option<Event>, UsageError> {
        let finished = || {
            UsageError::new("the sweep has ended")
                .hint("`cudock sweep add N` continues it with N more trials")
        };
        Ok(match self {
            Self::Pause if sweep.end().is_some() => return Err(finished()),
            Self::Pause => (!sweep.is_paused()).then_some(Event::Paused),
            Self::Cancel => sweep.end().is_none().then_some(Event::Canceled),
            Self::Stop { trial } => {
                let found = sweep.trial(trial).ok_or_else(|| no_such_trial(sweep, trial))?;
                stop_event(found)
            }
            Self::Raise { trials } => {
                let limit = sweep.trial_limit().unwrap_or(u64::MAX);
                let count = u32::try_from(trials.saturating_sub(limit)).unwrap_or(u32::MAX);
                (count > 0).then_some(Event::TrialsAdded { count })
            }
        })
    }
}

fn stop_event(trial: &Trial) -> Option<Event> {
    let attempt = trial.attempt().filter(|attempt| attempt.end.is_none() && trial.stop.is_none())?;
    Some(Event::StopDecided { trial: trial.id, attempt: attempt.number, reason: StopReason::User })
}

fn no_such_trial(sweep: &Sweep, trial: TrialId) -> UsageError {
    UsageError::new(match sweep.trials().len() {
        0 => format!("no trial {trial}: none was started yet"),
        count => format!("no trial {trial}: trials are 0 to {}", count - 1),
    })
}

/// Leaves a request for the process that runs the sweep. Returns whether it was carried out in
/// time.
pub(crate) fn ask(directory: &SweepDir, request: SweepRequest) -> Result<bool, FileError> {
    let name = format!("{:020}-{}.json", Timestamp::now().millis().unwrap_or_default(), std::process::id());
    let path = directory.requests().join(name);
    let text = serde_json::to_vec(&request).map_err(std::io::Error::from);
    text.and_then(|text| cudock_base::files::write_atomically(&path, &text))
        .map_err(FileError::at("write", &path))?;
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    while path.exists() {
        if Instant::now() > deadline {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}

/// The requests that wait, oldest first. Unreadable ones are removed.
pub(crate) fn waiting(directory: &SweepDir) -> Vec<(PathBuf, SweepRequest)> {
    let entries = fs::read_dir(directory.requests()).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    paths.sort();
    paths.into_iter().filter_map(|path| Some((path.clone(), read(&path)?))).collect()
}

fn read(path: &Path) -> Option<SweepRequest> {
    let text = cudock_base::files::read_optional(path, MAX_REQUEST).ok().flatten();
    let request = text.and_then(|text| serde_json::from_str(&text).ok());
    if request.is_none() {
        let _ = fs::remove_file(path);
    }
    request
}
