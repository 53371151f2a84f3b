//! The report of `cudock lock`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use cudock_base::text::format;
use schemars::JsonSchema;
use serde::Serialize;

use crate::file::LockFile;

/// Maximum number of changes in the text; the others are only counted.
const MAX_LINES: usize = 16;

/// The lock of a project, and what changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LockReport {
    pub state: LockState,
    /// Why the lock is out of date.
    pub reasons: Vec<String>,
    pub path: PathBuf,
    pub wheels: usize,
    pub debs: usize,
    /// Bytes to download.
    pub bytes: u64,
    pub changes: Vec<LockChange>,
    pub lock: LockFile,
}

/// Whether the lock was current.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LockState {
    Current,
    /// It was written.
    Written,
    /// It is out of date, and was left so.
    Stale,
}

/// A package that was added, removed or changed.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LockChange {
    pub name: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl LockReport {
    pub(crate) fn new(path: PathBuf, lock: LockFile, previous: Option<&LockFile>) -> Self {
        let state = if previous == Some(&lock) { LockState::Current } else { LockState::Written };
        Self {
            state,
            reasons: Vec::new(),
            path,
            wheels: lock.wheels.len(),
            debs: lock.debs.len(),
            bytes: lock.download_bytes(),
            changes: changes(previous, &lock),
            lock,
        }
    }

    /// A lock that was only checked.
    pub fn checked(path: PathBuf, lock: &LockFile, reasons: Vec<String>) -> Self {
        let state = if reasons.is_empty() { LockState::Current } else { LockState::Stale };
        Self { state, reasons, ..Self::new(path, lock.clone(), Some(lock)) }
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let (path, bytes) = (self.path.display(), format::bytes(self.bytes));
        let what = format!(
            "{}, {}, {bytes} to download",
            format::count(self.wheels, "wheel"),
            format::count(self.debs, "Debian package")
        );
        let mut text = match self.state {
            LockState::Current => format!("{path} is current: {what}\n"),
            LockState::Written => format!("wrote {path}: {what}\n"),
            LockState::Stale => format!("{path} is out of date: {}\n", self.reasons.join("; ")),
        };
        for change in self.changes.iter().take(MAX_LINES) {
            let line = match (&change.before, &change.after) {
                (None, Some(after)) => format!("  + {} {after}\n", change.name),
                (Some(before), None) => format!("  - {} {before}\n", change.name),
                (before, after) => format!(
                    "  ~ {} {} -> {}\n",
                    change.name,
                    before.as_deref().unwrap_or_default(),
                    after.as_deref().unwrap_or_default()
                ),
            };
            text.push_str(&line);
        }
        if self.changes.len() > MAX_LINES {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  … {} more", self.changes.len() - MAX_LINES);
        }
        text
    }
}

fn changes(previous: Option<&LockFile>, lock: &LockFile) -> Vec<LockChange> {
    let versions = |lock: &LockFile| -> BTreeMap<String, String> {
        let wheels = lock.wheels.iter().map(|wheel| (wheel.name.clone(), wheel.version.clone()));
        wheels
            .chain(lock.debs.iter().map(|deb| (format!("{} (deb)", deb.name), deb.version.clone())))
            .collect()
    };
    let (before, after) = (previous.map(versions).unwrap_or_default(), versions(lock));
    let names = before.keys().chain(after.keys()).collect::<std::collections::BTreeSet<_>>();
    let of = |name: &String| LockChange {
        name: name.clone(),
        before: before.get(name).cloned(),
        after: after.get(name).cloned(),
    };
    names.into_iter().map(of).filter(|change| change.before != change.after).collect()
}
