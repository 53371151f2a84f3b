//! A directory for the next trial, made while another one runs.
//!
//! On many file systems, creating the files of a trial takes longer than starting its process.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::layout::TrialDir;

const PREFIX: &str = ".spare-";

/// The spare directory of one worker, next to those of its trials.
#[derive(Debug, Default)]
pub(crate) struct SpareDir {
    ready: Option<PathBuf>,
}

impl SpareDir {
    /// Makes a directory that has what a trial's first attempt starts with. If that fails, a trial does without.
    pub(crate) fn prepare(&mut self, trials: &Path) {
        if self.ready.is_none() {
            let path = trials.join(format!("{PREFIX}{}", std::process::id()));
            self.ready = fill(&TrialDir::at(&path)).is_ok().then_some(path);
        }
    }

    /// Turns it into the directory of a trial, unless that one exists.
    pub(crate) fn become_trial(&mut self, directory: &Path) {
        self.ready = self.ready.take().filter(|path| fs::rename(path, directory).is_err());
    }
}

fn fill(directory: &TrialDir) -> io::Result<()> {
    fs::create_dir_all(directory.checkpoints())?;
    fs::create_dir_all(directory.artifacts())?;
    for path in [directory.parameters(), directory.log(1), directory.events(1)] {
        File::create(path)?;
    }
    Ok(())
}

/// Removes the spare directories of workers that are gone.
pub(crate) fn remove_spares(trials: &Path) {
    let is_spare = |name: &OsStr| name.to_string_lossy().starts_with(PREFIX);
    for entry in fs::read_dir(trials).into_iter().flatten().flatten() {
        if is_spare(&entry.file_name()) {
            // No trial has used it; what remains is removed the next time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_spare_directory_becomes_a_trials_and_never_replaces_one() {
        let trials = tempfile::tempdir().unwrap();
        let mut spare = SpareDir::default();
        spare.become_trial(&trials.path().join("0"));
        assert_eq!(names(trials.path()), [""; 0]);

        spare.prepare(trials.path());
        spare.become_trial(&trials.path().join("0"));
        assert_eq!(names(trials.path()), ["0"]);
        let files = ["artifacts", "attempt-1.jsonl", "attempt-1.log", "checkpoints", "parameters.json"];
        assert_eq!(names(&trials.path().join("0")), files);

        fs::write(trials.path().join("0/checkpoints/last"), "1").unwrap();
        spare.prepare(trials.path());
        spare.become_trial(&trials.path().join("0"));
        assert!(trials.path().join("0/checkpoints/last").exists());
        spare.become_trial(&trials.path().join("1"));
        assert_eq!(names(trials.path()), ["0", "1"]);

        spare.prepare(trials.path());
        remove_spares(trials.path());
        assert_eq!(names(trials.path()), ["0", "1"]);
    }
}
