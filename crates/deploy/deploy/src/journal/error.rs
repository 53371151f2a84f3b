//! Errors of the journal.

use std::path::{Path, PathBuf};

use cudock_base::{CUDOCK_STATE, ErrorKind, FileError, Report};
use rusqlite::ErrorCode;

/// A journal that cannot be read or written. Nothing is created in a cloud before the journal knows about it.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("no directory for the journal of deployments: neither {CUDOCK_STATE} nor HOME is set")]
    NoDirectory,
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot {action} {}, the id of the journal's directory", path.display())]
    StateId { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("the journal {} is locked by another command", path.display())]
    Locked { path: PathBuf },
    #[error("no space left on the device of the journal {}", path.display())]
    Full { path: PathBuf },
    #[error("the journal {} is damaged: {problem}", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error("the journal {} has version {version}, and this program supports {supported}", path.display())]
    TooNew { path: PathBuf, version: i64, supported: i64 },
    #[error("a deployment `{name}` exists")]
    NameTaken { name: String },
    #[error("cannot use the journal {}", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
}

impl JournalError {
    pub(super) fn new(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged { path, problem: source.to_string() }
            }
            _ => Self::Database { path, source },
        }
    }

    pub(super) fn damaged(path: &Path, problem: &impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), problem: problem.to_string() }
    }
}

impl Report for JournalError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NameTaken { .. } => ErrorKind::Input,
            _ => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NoDirectory => format!("set {CUDOCK_STATE} to a directory"),
            Self::File(_) | Self::Database { .. } | Self::StateId { .. } => {
                format!("{CUDOCK_STATE} names another directory for it")
            }
            Self::Locked { .. } => "try again when the other command has ended".to_owned(),
            Self::Full { .. } => format!("free some space, or set {CUDOCK_STATE} to another directory"),
            Self::Damaged { path, .. } => format!(
                "move {} away, then `cudock gc` finds by tag what exists in Azure and deletes it",
                path.display()
            ),
            Self::TooNew { .. } => "use the newer cudock that wrote it".to_owned(),
            Self::NameTaken { name } => {
                format!("`cudock down {name}` deletes it; --name gives the new one another name")
            }
        };
        vec![hint]
    }
}
