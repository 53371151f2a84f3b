//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::PricesError;

/// A file of ours larger than this is not one of ours.
const LARGEST: u64 = 64 << 20;

/// Puts a file in its place at once: whoever is killed or runs out of disk leaves the old one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), PricesError> {
    // The ending is none that tables have, so that nobody takes it for one.
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written {
        // What is half written is of no use; that it cannot be removed is not the error to tell.
        let _ = fs::remove_file(&beside);
        return Err(failed("write", &beside)(error));
    }
    fs::rename(&beside, path).map_err(failed("replace", path))?;
    // The new name lasts once the folder is written; some file systems cannot be asked to.
    if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// A file's text; none if there is no such file.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<String>, PricesError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", path)(error)),
    };
    let mut text = String::new();
    let length = file.take(LARGEST + 1).read_to_string(&mut text).map_err(failed("read", path))?;
    if u64::try_from(length).is_ok_and(|length| length > LARGEST) {
        let reason = format!("has more than {LARGEST} bytes");
        return Err(PricesError::Overlay { path: path.to_owned(), reason });
    }
    Ok(Some(text))
}

/// Removes a file that may not be there.
pub(crate) fn remove(path: &Path) -> Result<(), PricesError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

pub(crate) fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PricesError + use<> {
    let path: PathBuf = path.to_owned();
    move |source| PricesError::Disk { doing, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("azure_prices.csv");
        write_whole(&path, b"old").unwrap();
        // A folder in the way of the file beside it, as a full disk would be.
        fs::create_dir(folder.path().join("azure_prices.csv.new")).unwrap();
        assert!(write_whole(&path, b"new").is_err());
        assert_eq!(read_if_there(&path).unwrap().as_deref(), Some("old"));
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert_eq!(read_if_there(&path).unwrap(), None);
        write_whole(&path, b"1").unwrap();
        write_whole(&path, b"2").unwrap();
        assert_eq!(read_if_there(&path).unwrap().as_deref(), Some("2"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(read_if_there(&path).unwrap(), None);
    }
}
