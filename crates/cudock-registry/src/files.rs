//! Configuration files of others, read within bounds.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::RegistryError;

const LARGEST: u64 = 1 << 20;

/// The text of a file, or nothing if there is no such file. One of more than a mebibyte is refused rather than cut.
pub fn read_if_there(file: &Path) -> Result<Option<String>, RegistryError> {
    let wrong = |reason: String| RegistryError::Config { file: file.to_owned(), reason };
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
    };
    let mut text = String::new();
    opened
        .take(LARGEST + 1)
        .read_to_string(&mut text)
        .map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if u64::try_from(text.len()).is_ok_and(|length| length > LARGEST) {
        return Err(wrong("is larger than a mebibyte".to_owned()));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        assert_eq!(read_if_there(&file).unwrap(), None);
        assert_eq!(read_if_there(&file.join("below")).unwrap(), None);
        let largest = usize::try_from(LARGEST).unwrap();
        std::fs::write(&file, "x".repeat(largest)).unwrap();
        assert_eq!(read_if_there(&file).unwrap().unwrap().len(), largest);
        std::fs::write(&file, "x".repeat(largest + 1)).unwrap();
        assert!(read_if_there(&file).unwrap_err().to_string().contains("larger than a mebibyte"));
        assert!(read_if_there(folder.path()).is_err());
    }
}
