//! Files that only the user can read.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cudock_base::FileError;

use super::JournalError;

/// Opens a file that only the user can read, and creates it if it does not exist.
pub(super) fn open_private(path: &Path) -> Result<File, JournalError> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    Ok(file.map_err(FileError::at("open", path))?)
}
