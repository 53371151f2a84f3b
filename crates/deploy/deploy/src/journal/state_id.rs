//! The id of a state directory, which identifies in the tags of a deployment the journal that knows it.
//!
//! It is made once, in a file of its own: it survives a journal that was damaged and moved away,
//! and is lost with the directory. Next to it is the number of the file, so that a copy of the
//! directory gets an id of its own: deployments of one are unknown to the other from then on.

use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cudock_azure::is_run_id;

use super::JournalError;
use super::private_file::open_private;
use crate::ids::new_id;

const FILE_NAME: &str = "state-id";

/// Maximum size of a file written here.
const LONGEST: u64 = 100;

/// The id of a directory, which is made if it has none. The caller keeps others from doing the same.
pub(super) fn state_id(directory: &Path) -> Result<String, JournalError> {
    let path = directory.join(FILE_NAME);
    let failed = |action| {
        let path = path.clone();
        move |source| JournalError::StateId { action, path, source }
    };
    let mut file = open_private(&path)?;
    let number = file.metadata().map_err(failed("read"))?.ino();
    let mut text = String::new();
    // A file that is not text was not written here.
    let _ = (&file).take(LONGEST).read_to_string(&mut text);
    if let Some(id) = id_in(&text, number) {
        return Ok(id);
    }
    let id = new_id();
    let mut write = || {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{id} {number}")?;
        file.sync_all()
    };
    write().map_err(failed("write"))?;
    Ok(id)
}

/// The id of a directory that has one.
pub(crate) fn known_state_id(directory: &Path) -> Option<String> {
    let path = directory.join(FILE_NAME);
    let number = path.metadata().ok()?.ino();
    id_in(&std::fs::read_to_string(path).ok()?, number)
}

/// The id in a file with this number.
fn id_in(text: &str, number: u64) -> Option<String> {
    let (id, of) = text.trim_end().split_once(' ')?;
    (is_run_id(id) && of.parse() == Ok(number)).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_id_is_made_once_and_a_copy_of_the_directory_has_another() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(known_state_id(first.path()), None);
        let id = state_id(first.path()).unwrap();
        assert_eq!(state_id(first.path()).unwrap(), id);
        assert_eq!(known_state_id(first.path()), Some(id.clone()));
        fs::copy(first.path().join(FILE_NAME), second.path().join(FILE_NAME)).unwrap();
        assert_eq!(known_state_id(second.path()), None);
        assert_ne!(state_id(second.path()).unwrap(), id);
        let moved = second.path().join("moved");
        fs::rename(first.path(), &moved).unwrap();
        assert_eq!(state_id(&moved).unwrap(), id);
    }

    #[test]
    fn a_file_that_was_cut_or_damaged_gets_a_new_id() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        for damaged in [&b""[..], b"0123456789ab", b"\xff\xfe 3", b"../../etc/pas 1\n", &[b'a'; 5000]] {
            fs::write(&path, damaged).unwrap();
            let id = state_id(directory.path()).unwrap();
            assert!(is_run_id(&id), "{damaged:?}");
            assert_eq!(state_id(directory.path()).unwrap(), id, "{damaged:?}");
        }
    }
}
