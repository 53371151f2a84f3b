//! Directories for temporary files, of which nothing stays even if a process is killed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::FileError;

/// Others may keep their files in the same directory.
const PREFIX: &str = "cudock-scratch-";
const FILES: &str = "files";

/// A directory that is removed when this is dropped. If the process is killed, the next one that
/// creates a scratch directory next to it removes it: a directory in use is locked, and a lock ends
/// with its process.
#[derive(Debug)]
pub struct ScratchDir {
    /// The directory that is locked.
    root: PathBuf,
    /// The directory below it that is used. Its users may lock it themselves, as those who write a layout do.
    path: PathBuf,
    /// None if the file system has no locks. An abandoned directory is then never recognized, and
    /// stays.
    _lock: Option<File>,
}

impl ScratchDir {
    /// Makes a directory in `parent`, which is created if it is missing, and removes those that killed processes have left there.
    pub fn new(parent: &Path) -> Result<Self, FileError> {
        Self::create(parent).map_err(FileError::at("write", parent))
    }

    fn create(parent: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(parent)?;
        remove_abandoned(parent)?;
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let root = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&root) {
                // Of another process with the same id, in another namespace.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            }
            // Another process may take it for abandoned until it is locked.
            let lock = match locked(&root) {
                Ok(Some(lock)) if root.is_dir() => Some(lock),
                Err(error) if error.kind() != io::ErrorKind::NotFound => None,
                _ => continue,
            };
            let path = root.join(FILES);
            fs::create_dir(&path)?;
            return Ok(Self { root, path, _lock: lock });
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // A directory that cannot be removed now is removed later as abandoned.
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn remove_abandoned(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let is_own = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_own && let Ok(Some(_lock)) = locked(&entry.path()) {
            // Another process may be removing it, too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Locks a directory; `None` if another process has locked it.
fn locked(path: &Path) -> io::Result<Option<File>> {
    let directory = File::open(path)?;
    match directory.try_lock() {
        Ok(()) => Ok(Some(directory)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_directory_is_gone_with_its_owner_or_when_the_next_one_is_made() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path().join("scratch");
        let first = ScratchDir::new(&parent).unwrap();
        fs::write(first.path().join("file"), "x").unwrap();
        // Directories of killed processes, with files; and one that is not a scratch directory.
        for name in ["cudock-scratch-1-0", "cudock-scratch-1-1/below"] {
            fs::create_dir_all(parent.join(name)).unwrap();
        }
        fs::write(parent.join("other"), "x").unwrap();
        let second = ScratchDir::new(&parent).unwrap();
        assert_ne!(first.path(), second.path());
        assert!(first.path().join("file").is_file());
        assert_eq!(names(&parent).len(), 3, "{:?}", names(&parent));
        drop((first, second));
        assert_eq!(names(&parent), ["other"]);
    }

    #[test]
    fn its_user_can_lock_it() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = ScratchDir::new(parent.path()).unwrap();
        assert!(locked(scratch.path()).unwrap().is_some());
        ScratchDir::new(parent.path()).unwrap();
        assert!(scratch.path().is_dir(), "its own lock holds nevertheless");
    }

    #[test]
    fn directories_that_are_made_at_once_are_not_taken_for_abandoned() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let scratch = ScratchDir::new(parent.path()).unwrap();
                        let file = scratch.path().join("file");
                        fs::write(&file, "x").unwrap();
                        assert_eq!(fs::read(&file).unwrap(), b"x");
                    }
                });
            }
        });
        assert_eq!(names(parent.path()), Vec::<String>::new());
    }
}
