//! Errors of a journal.

use std::path::PathBuf;

use cudock_base::{ErrorKind, FileError, Report};

use crate::state::ApplyError;

/// A journal that cannot be used. Nothing is started or stopped that is not in it.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("a sweep exists in {}", path.display())]
    Exists { path: PathBuf },
    #[error("the sweep in {} is being run by another process", path.display())]
    Locked { path: PathBuf },
    #[error("the journal {} is damaged at byte {offset}: {problem}", path.display())]
    Damaged { path: PathBuf, offset: u64, problem: String },
    #[error("the journal {} has version {version}, and this program supports {supported}", path.display())]
    TooNew { path: PathBuf, version: u32, supported: u32 },
    #[error("the journal {} is incomplete after a failed write", path.display())]
    Broken { path: PathBuf },
    #[error("`limits.dollars` is set, and the price of a GPU is unknown")]
    NoPrice,
    #[error(transparent)]
    Event(#[from] ApplyError),
}

impl Report for JournalError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Exists { .. } | Self::NoPrice => ErrorKind::Input,
            _ => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::File(error) if error.is_storage_full() => "free some space, then resume the sweep",
            Self::Exists { .. } => "resume it, or use another directory",
            Self::Locked { .. } => "wait for it, or end that process first",
            Self::Damaged { .. } => "restore the file from a copy, or move it away and start over",
            Self::TooNew { .. } => "use the newer cudock that wrote it",
            Self::Broken { .. } => "resume the sweep: what was not written is cut off",
            Self::NoPrice => "give the price of a GPU per hour, or remove the limit",
            Self::File(_) | Self::Event(_) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}
