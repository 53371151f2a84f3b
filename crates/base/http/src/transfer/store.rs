//! A cache of blobs by their digest, each complete and verified or not there at all.
//!
//! ```text
//! blobs/sha256/<hex>   complete, verified
//! partial/<hex>        being written, by the process that holds its lock
//! ```

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cudock_base::{Digest, FileError};

use crate::transfer::partial::{Finished, PartialFile};

/// A directory of blobs that any number of processes may share.
#[derive(Debug, Clone)]
pub struct BlobStore {
    directory: PathBuf,
}

/// The state of a blob at [`BlobStore::begin`].
pub enum Blob {
    Complete(PathBuf),
    /// Incomplete; the caller writes it.
    Partial(Box<PartialFile>),
}

impl BlobStore {
    /// Opens a store, and creates its directories where they are missing.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, FileError> {
        let directory = directory.into();
        for name in ["blobs/sha256", "blobs/sha512", "partial"] {
            let path = directory.join(name);
            fs::create_dir_all(&path).map_err(FileError::at("create directory", &path))?;
        }
        Ok(Self { directory })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of a blob, if it is complete.
    pub fn path_of(&self, digest: &Digest) -> Option<PathBuf> {
        let path = self.blob_path(digest);
        path.is_file().then_some(path)
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.directory.join("blobs").join(digest.algorithm().name()).join(digest.hex())
    }

    /// Waits until no other process writes this blob; then it is complete, or the caller's to write. Calls `on_wait` before
    /// it waits.
    pub fn begin(&self, digest: &Digest, size: u64, on_wait: &dyn Fn()) -> Result<Blob, FileError> {
        let (path, final_path) = (self.directory.join("partial").join(digest.hex()), self.blob_path(digest));
        Ok(match PartialFile::open(&path, &final_path, digest, size, on_wait)? {
            Some(partial) => Blob::Partial(Box::new(partial)),
            None => Blob::Complete(final_path),
        })
    }

    /// Moves a complete file into the store. The caller has computed the digest while it wrote the file, on the file
    /// system of the store.
    pub fn adopt(&self, file: &Path, digest: &Digest) -> Result<PathBuf, FileError> {
        let path = self.blob_path(digest);
        fs::rename(file, &path).map_err(FileError::at("write", &path))?;
        Ok(path)
    }

    /// The bytes of a blob of at most `limit` bytes, verified anew.
    pub fn read(&self, digest: &Digest, limit: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(self.blob_path(digest)).ok()?;
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).ok()?;
        let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= limit);
        (fits && Digest::of(digest.algorithm(), &bytes) == *digest).then_some(bytes)
    }

    pub fn write(&self, digest: &Digest, bytes: &[u8]) -> Result<(), FileError> {
        let path = self.blob_path(digest);
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let changed = || FileError::at("write", &path)(io::Error::other("the content has another digest"));
        let mut partial = match self.begin(digest, size, &|| {})? {
            Blob::Partial(partial) => partial,
            Blob::Complete(_) if self.read(digest, size).is_some() => return Ok(()),
            Blob::Complete(path) => {
                // Damaged on disk.
                fs::remove_file(&path).map_err(FileError::at("remove", &path))?;
                match self.begin(digest, size, &|| {})? {
                    Blob::Partial(partial) => partial,
                    Blob::Complete(_) => return Ok(()),
                }
            }
        };
        partial.restart()?;
        if !partial.append(bytes)? {
            return Err(changed());
        }
        match partial.finish()? {
            Finished::Complete(_) => Ok(()),
            Finished::WrongDigest { .. } => Err(changed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn partial(blob: Blob) -> Box<PartialFile> {
        match blob {
            Blob::Partial(partial) => partial,
            Blob::Complete(path) => panic!("{} is complete", path.display()),
        }
    }

    #[test]
    fn a_blob_is_not_seen_before_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let (store, digest) = (BlobStore::open(directory.path()).unwrap(), Digest::sha256_of(b"whole"));
        let mut writer = partial(store.begin(&digest, 5, &|| {}).unwrap());
        assert!(writer.append(b"who").unwrap());
        assert!(!writer.append(b"lex").unwrap());
        assert_eq!(store.path_of(&digest), None);
        drop(writer);
        let mut writer = partial(store.begin(&digest, 5, &|| {}).unwrap());
        assert_eq!(writer.written(), 3);
        assert!(writer.append(b"le").unwrap());
        assert_eq!(store.path_of(&digest), None);
        assert!(matches!(writer.finish().unwrap(), Finished::Complete(_)));
        assert_eq!(fs::read(store.path_of(&digest).unwrap()).unwrap(), b"whole");
    }

    #[test]
    fn a_process_that_waits_for_a_file_that_is_then_removed_starts_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let (store, digest) = (BlobStore::open(directory.path()).unwrap(), Digest::sha256_of(b"blob"));
        let first = partial(store.begin(&digest, 4, &|| {}).unwrap());
        let (waits, is_waiting) = mpsc::channel();
        let second = thread::spawn({
            let (store, digest) = (store.clone(), digest.clone());
            move || {
                let mut writer = partial(store.begin(&digest, 4, &|| waits.send(()).unwrap()).unwrap());
                assert!(writer.append(b"blob").unwrap());
                assert!(matches!(writer.finish().unwrap(), Finished::Complete(_)));
            }
        });
        is_waiting.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(store.path_of(&digest), None);
        drop(first);
        second.join().unwrap();
        assert_eq!(fs::read(store.path_of(&digest).unwrap()).unwrap(), b"blob");
    }

    #[test]
    fn a_directory_that_cannot_be_created_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let error = BlobStore::open(&file).unwrap_err();
        assert!(error.to_string().contains(&file.display().to_string()), "{error}");
    }

    #[test]
    fn a_damaged_blob_is_not_read_and_is_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        let (store, digest) = (BlobStore::open(directory.path()).unwrap(), Digest::sha256_of(b"blob"));
        store.write(&digest, b"blob").unwrap();
        assert_eq!(store.read(&digest, 4).as_deref(), Some(b"blob".as_slice()));
        assert_eq!(store.read(&digest, 3), None);
        fs::write(store.path_of(&digest).unwrap(), "bl0b").unwrap();
        assert_eq!(store.read(&digest, 4), None);
        store.write(&digest, b"blob").unwrap();
        assert_eq!(store.read(&digest, 4).as_deref(), Some(b"blob".as_slice()));
        assert!(store.write(&Digest::sha256_of(b"other"), b"blob").is_err());
    }
}
