//! The last lines that failed trials wrote, for those who ask why.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::trial_id::TrialId;

/// Maximum number of lines that are kept of a log.
pub const MAX_LINES: usize = 10;

/// The end of the output of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogTail {
    pub path: PathBuf,
    /// A few, without colors and empty lines; they may hold anything else.
    pub lines: Vec<String>,
}

/// The ends of the logs of failed trials, as far as they are on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailureLogs {
    by_trial: BTreeMap<TrialId, LogTail>,
}

impl FailureLogs {
    pub fn of(&self, trial: TrialId) -> Option<&LogTail> {
        self.by_trial.get(&trial)
    }
}

impl FromIterator<(TrialId, LogTail)> for FailureLogs {
    fn from_iter<I: IntoIterator<Item = (TrialId, LogTail)>>(logs: I) -> Self {
        Self { by_trial: logs.into_iter().collect() }
    }
}

impl LogTail {
    /// The last of some lines; none if there are none.
    pub fn new(path: &Path, mut lines: Vec<String>) -> Option<Self> {
        lines.drain(..lines.len().saturating_sub(MAX_LINES));
        (!lines.is_empty()).then(|| Self { path: path.to_owned(), lines })
    }
}
