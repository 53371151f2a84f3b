//! Where directories are moved before they are removed: removing large ones takes long, and may be interrupted.

use std::fs;
use std::path::{Path, PathBuf};

use cudock_base::files::{remove_optional, temporary_path};

use crate::error::{OnError, RuntimeError};

pub(crate) fn trash_of(root: &Path) -> PathBuf {
    root.join("trash")
}

/// Takes a directory out of the list that its record puts it in, so that it can be removed later. Returns where it is now;
/// `None` if it is gone already.
pub(crate) fn discard(
    directory: &Path,
    record: &Path,
    trash: &Path,
) -> Result<Option<PathBuf>, RuntimeError> {
    let Some(name) = directory.file_name() else { return Ok(None) };
    let target = temporary_path(&trash.join(name));
    match fs::create_dir_all(trash).and_then(|()| fs::rename(directory, &target)) {
        Ok(()) => Ok(Some(target)),
        Err(_) if !directory.exists() => Ok(None),
        // On a full disk it may not be moved. Without its record it is not in the list, either.
        Err(_) => {
            remove_optional(record).on("cannot remove", directory)?;
            Ok(Some(directory.to_owned()))
        }
    }
}
