//! The file of a journal.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cudock_base::{FileError, files};

use super::error::JournalError;
use super::line::{self, Parsed, parse};
use crate::event::Record;

/// A journal that is open for writing.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Bytes that are whole lines.
    length: u64,
    /// When the first line was written that may not be on disk.
    unsynced: Option<Instant>,
    /// Whether a write has failed, so that memory and file may differ.
    is_broken: bool,
}

impl Journal {
    /// Creates a journal with its first records; the file must not exist. It appears complete or not at all.
    pub fn create(path: &Path, records: &[Record]) -> Result<Self, JournalError> {
        let temporary = files::temporary_path(path);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&temporary);
        let file = file.map_err(FileError::at("create", &temporary))?;
        let mut journal = Self { path: path.to_owned(), file, length: 0, unsynced: None, is_broken: false };
        let created = journal.fill(&temporary, records);
        // The rest of it is useless, and the first error is the one to report.
        let _ = fs::remove_file(&temporary);
        created.map(|()| journal)
    }

    fn fill(&mut self, temporary: &Path, records: &[Record]) -> Result<(), JournalError> {
        self.lock()?;
        let mut bytes = line::header();
        for record in records {
            line::encode(record, &mut bytes).map_err(|problem| self.damaged(0, problem))?;
        }
        self.write(&bytes, true)?;
        // Unlike a rename, a link does not replace a journal that another process has created in the meantime.
        fs::hard_link(temporary, &self.path).map_err(|source| match source.kind() {
            std::io::ErrorKind::AlreadyExists => JournalError::Exists { path: self.path.clone() },
            _ => FileError::at("create", &self.path)(source).into(),
        })?;
        sync_directory(&self.path);
        Ok(())
    }

    /// Opens a journal, locks it, and cuts off a line that was not written completely.
    pub fn open(path: &Path) -> Result<(Self, Vec<Record>), JournalError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(FileError::at("open", path))?;
        let mut journal = Self { path: path.to_owned(), file, length: 0, unsynced: None, is_broken: false };
        journal.lock()?;
        let mut bytes = Vec::new();
        journal.file.read_to_end(&mut bytes).map_err(FileError::at("read", path))?;
        let Parsed { records, length } = parse(path, &bytes)?;
        journal.length = length as u64;
        if length < bytes.len() {
            let cut = journal.file.set_len(journal.length).and_then(|()| journal.file.sync_all());
            cut.map_err(FileError::at("truncate", path))?;
        }
        journal.file.seek(SeekFrom::Start(journal.length)).map_err(FileError::at("read", path))?;
        Ok((journal, records))
    }

    /// The records of a journal, which another process may be writing. Nothing is changed.
    pub fn read(path: &Path) -> Result<Vec<Record>, JournalError> {
        let bytes = fs::read(path).map_err(FileError::at("read", path))?;
        Ok(parse(path, &bytes)?.records)
    }

    /// Appends records in one write. With `sync`, they are on disk when it returns.
    pub fn append(&mut self, records: &[Record], sync: bool) -> Result<(), JournalError> {
        let mut bytes = Vec::new();
        for record in records {
            line::encode(record, &mut bytes).map_err(|problem| self.damaged(self.length, problem))?;
        }
        self.write(&bytes, sync)
    }

    /// Puts lines on disk that were written at least this long ago, with all after them.
    pub fn sync_older_than(&mut self, age: Duration) -> Result<(), JournalError> {
        if self.unsynced.is_some_and(|since| since.elapsed() >= age) { self.write(&[], true) } else { Ok(()) }
    }

    fn write(&mut self, bytes: &[u8], sync: bool) -> Result<(), JournalError> {
        if self.is_broken {
            return Err(JournalError::Broken { path: self.path.clone() });
        }
        let written =
            self.file.write_all(bytes).and_then(|()| if sync { self.file.sync_data() } else { Ok(()) });
        if let Err(source) = written {
            self.is_broken = true;
            // The next process cuts it off if this one cannot.
            let _ = self.file.set_len(self.length);
            return Err(FileError::at("write", &self.path)(source).into());
        }
        self.length += bytes.len() as u64;
        self.unsynced = if sync { None } else { self.unsynced.or_else(|| Some(Instant::now())) };
        Ok(())
    }

    fn lock(&self) -> Result<(), JournalError> {
        match self.file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(JournalError::Locked { path: self.path.clone() }),
            Err(TryLockError::Error(source)) => Err(FileError::at("lock", &self.path)(source).into()),
        }
    }

    fn damaged(&self, offset: u64, problem: String) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), offset, problem }
    }
}

/// A child process that is being started has a copy of the descriptor until it executes its program, so closing the file
/// alone would leave it locked for a moment.
impl Drop for Journal {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Some file systems cannot sync a directory.
fn sync_directory(path: &Path) {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Ok(directory) = File::open(directory.unwrap_or(Path::new("."))) {
        let _ = directory.sync_all();
    }
}
