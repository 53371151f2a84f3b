//! Reads and writes price files.

use std::io;
use std::path::Path;

use cudock_base::{FileError, files};

use crate::error::PricesError;

/// The size limit of files.
const MAX_FILE: u64 = 64 << 20;

/// Replaces a file in one step.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), PricesError> {
    Ok(files::write_atomically(path, bytes).map_err(FileError::at("write", path))?)
}

/// The text of a file; none if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<String>, PricesError> {
    files::read_optional(path, MAX_FILE).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            PricesError::Overlay { path: path.to_owned(), reason: error.to_string() }
        }
        _ => FileError::at("read", path)(error).into(),
    })
}
