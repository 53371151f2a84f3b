//! State in JSON files, which other processes read at any time.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use cudock_base::files::write_unsynced;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{OnError, RuntimeError};

/// Replaces a file in one step; on a full disk, overwrites it in place.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), RuntimeError> {
    let text = serde_json::to_vec(value)
        .map_err(|source| RuntimeError::Damaged { path: path.to_owned(), source })?;
    match write_unsynced(path, &text) {
        Err(error) if is_full(&error) => overwrite(path, text),
        written => written,
    }
    .on("cannot write", path)
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Overwrites an existing file within its allocated space. Readers may see it half written, so [`read_json`] retries.
fn overwrite(path: &Path, mut text: Vec<u8>) -> io::Result<()> {
    let file = fs::File::options().write(true).open(path)?;
    let about = file.metadata()?;
    let old = usize::try_from(about.len()).unwrap_or(usize::MAX);
    if text.len() as u64 > about.blocks().saturating_mul(512).max(about.len()) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    // Padded with blanks, since truncating the file afterwards would not be atomic.
    text.resize(text.len().max(old), b' ');
    file.write_all_at(&text, 0)
}

/// Fails with [`RuntimeError::Damaged`] for a file that is empty or incomplete, such as after a power cut.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RuntimeError> {
    let mut tries = 0;
    loop {
        let text = fs::read(path).on("cannot read", path)?;
        match serde_json::from_slice(&text) {
            Ok(value) => return Ok(value),
            // On a full disk it may be half written.
            Err(_) if tries < 3 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(source) => return Err(RuntimeError::Damaged { path: path.to_owned(), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_see_whole_values_while_several_writers_replace_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("status.json");
        let value = |number: usize| vec![number; 2000];
        write_json(&path, &value(0)).unwrap();
        std::thread::scope(|scope| {
            for number in 1..=3 {
                let path = &path;
                scope.spawn(move || (0..100).for_each(|_| write_json(path, &value(number)).unwrap()));
            }
            for _ in 0..200 {
                let read: Vec<usize> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                assert!(read == value(read[0]));
            }
        });
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
