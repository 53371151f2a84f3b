//! A file that is being written, by this process or by one that was killed.

use cudock_base::bug::Parts;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cudock_base::{Digest, FileError, Hasher, files};

/// How [`PartialFile::finish`] ended.
pub enum Finished {
    /// Verified and renamed to its final path.
    Complete(PathBuf),
    /// Emptied, since its digest is `actual`.
    WrongDigest {
        /// The digest of what was written.
        actual: Digest,
    },
}

/// A file of known size and digest that is being written next to its final path.
///
/// It is locked as long as this lives, hashed on the way, synced and then renamed, so that it is
/// never visible incomplete. The next process continues the file of a killed one.
pub struct PartialFile {
    file: File,
    path: PathBuf,
    final_path: PathBuf,
    digest: Digest,
    size: u64,
    hasher: Hasher,
    written: u64,
}

impl PartialFile {
    /// Opens or continues the file at `path`, which becomes `final_path` when it is complete. Waits until no other process
    /// writes it, and calls `on_wait` before that; `None` if that process has completed it.
    pub fn open(
        path: &Path,
        final_path: &Path,
        digest: &Digest,
        size: u64,
        on_wait: &dyn Fn(),
    ) -> Result<Option<Self>, FileError> {
        loop {
            if final_path.is_file() {
                return Ok(None);
            }
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .map_err(FileError::at("write", path))?;
            files::lock(&file, on_wait).map_err(FileError::at("lock", path))?;
            if is_same_file(&file, path) {
                let partial = Self {
                    file,
                    path: path.to_owned(),
                    final_path: final_path.to_owned(),
                    digest: digest.clone(),
                    size,
                    hasher: Hasher::new(digest.algorithm()),
                    written: 0,
                };
                return partial.resume().map(Some);
            }
            // The process that held the lock has renamed or removed this very file.
        }
    }

    /// The digest it shall have.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The size it shall have.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// How many bytes are there.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether all bytes are there, right or wrong.
    pub fn is_full(&self) -> bool {
        self.written == self.size
    }

    /// Hashes what an earlier process left. If that is longer than the file shall be, it is dropped.
    fn resume(mut self) -> Result<Self, FileError> {
        let length = self.file.metadata().map_err(FileError::at("read", &self.path))?.len();
        if length > self.size {
            self.restart()?;
            return Ok(self);
        }
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let count = match self.file.read(&mut buffer) {
                Ok(0) => return Ok(self),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(FileError::at("read", &self.path)(error)),
            };
            self.hasher.update(buffer.part(..count));
            self.written += u64::try_from(count).unwrap_or_default();
        }
    }

    pub fn restart(&mut self) -> Result<(), FileError> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .map_err(FileError::at("write", &self.path))?;
        self.hasher = Hasher::new(self.digest.algorithm());
        self.written = 0;
        Ok(())
    }

    /// Writes the next bytes; `false`, and nothing is written, if they exceed the size.
    pub fn append(&mut self, bytes: &[u8]) -> Result<bool, FileError> {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.written.checked_add(count).is_none_or(|end| end > self.size) {
            return Ok(false);
        }
        self.file.write_all(bytes).map_err(FileError::at("write", &self.path))?;
        self.hasher.update(bytes);
        self.written += count;
        Ok(true)
    }

    /// Verifies, syncs and renames the file; or empties it.
    pub fn finish(&mut self) -> Result<Finished, FileError> {
        let actual = self.hasher.digest();
        if actual != self.digest {
            // Emptied rather than removed: the lock stays good for a second attempt.
            self.restart()?;
            return Ok(Finished::WrongDigest { actual });
        }
        self.file.sync_all().map_err(FileError::at("sync", &self.path))?;
        fs::rename(&self.path, &self.final_path).map_err(FileError::at("write", &self.final_path))?;
        if let Some(directory) = self.final_path.parent() {
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(FileError::at("sync", directory))?;
        }
        Ok(Finished::Complete(self.final_path.clone()))
    }
}

impl Drop for PartialFile {
    /// Removes an empty file. The lock is still held, so that no other process writes it.
    fn drop(&mut self) {
        if self.written == 0 && is_same_file(&self.file, &self.path) {
            // One that stays is continued by the next process.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn is_same_file(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(theirs)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())
}
