//! The output of a trial, on disk within a limit.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes of one of the two files of a log.
pub(crate) const MAX_LOG: u64 = 16 << 20;

/// A log that consists of a file and, once that is full, the file before it. Output before that is dropped, and the log
/// says so: how a trial ended is told by its last lines.
#[derive(Debug)]
pub(crate) struct TrialLog {
    path: PathBuf,
    file: File,
    /// Bytes in the file.
    length: u64,
    /// Bytes in files that were replaced.
    dropped: u64,
    previous: u64,
    limit: u64,
}

impl TrialLog {
    pub(crate) fn create(path: &Path, limit: u64) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(path)?;
        Ok(Self { path: path.to_owned(), file, length: 0, dropped: 0, previous: 0, limit })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(usize::try_from(self.limit).unwrap_or(usize::MAX).max(1)) {
            if self.length > 0 && self.length + part.len() as u64 > self.limit {
                self.rotate()?;
            }
            self.file.write_all(part)?;
            self.length += part.len() as u64;
        }
        Ok(())
    }

    /// Bytes of output that are in neither file.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    fn rotate(&mut self) -> io::Result<()> {
        let mut name = self.path.clone().into_os_string();
        name.push(".1");
        let previous = PathBuf::from(name);
        fs::rename(&self.path, &previous)?;
        self.dropped += std::mem::replace(&mut self.previous, self.length);
        self.file = File::create(&self.path)?;
        let name = previous.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let note = match self.dropped {
            0 => format!("[cudock: earlier output is in {name}]\n"),
            dropped => {
                format!("[cudock: earlier output is in {name}; {dropped} bytes before it were dropped]\n")
            }
        };
        self.file.write_all(note.as_bytes())?;
        self.length = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_any_length_takes_two_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = TrialLog::create(&path, 100).unwrap();
        for number in 0..100 {
            log.write(format!("{number:09}\n").as_bytes()).unwrap();
        }
        assert_eq!(log.dropped(), 800);
        let last = fs::read_to_string(&path).unwrap();
        assert!(last.starts_with(
            "[cudock: earlier output is in log.1; 800 bytes before it were dropped]\n000000090\n"
        ));
        assert!(last.ends_with("000000099\n"));
        assert!(fs::read_to_string(directory.path().join("log.1")).unwrap().ends_with("000000089\n"));
        log.write(&[b'x'; 1000]).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        assert!(fs::metadata(&path).unwrap().len() < 300);
    }
}
