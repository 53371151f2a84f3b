//! Detection of changed files.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// Identifies the current content of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    size: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl FileStamp {
    /// Reads the stamp of a file; `None` if there is no such file.
    pub fn of(file: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(file).ok()?;
        Some(Self { size: metadata.len(), modified: metadata.modified().ok(), inode: metadata.ino() })
    }
}
