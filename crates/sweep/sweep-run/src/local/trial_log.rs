//! The output of a trial, on disk within a limit.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use cudock_base::text::strip_ansi;

use super::lines::LineSplitter;

/// Bytes of one of the two files of a log.
pub(crate) const MAX_LOG: u64 = 16 << 20;

/// Bytes at the end of a log in which its last lines are looked for.
const TAIL: u64 = 16 << 10;

/// The lines at the end of a log that are not empty, without colors.
pub(crate) fn last_lines(path: &Path) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    let (mut splitter, mut lines) = (LineSplitter::default(), Vec::new());
    let mut keep = |line: &str| {
        let line = strip_ansi(line);
        if !line.trim().is_empty() {
            lines.push(line.trim_end().to_owned());
        }
    };
    splitter.feed(&bytes, &mut keep);
    splitter.finish(&mut keep);
    // Where a line is cut, only its end is there.
    let cut = usize::from(start > 0 && lines.len() > 1);
    Ok(lines.split_off(cut))
}

/// A log that consists of a file and, once that is full, the file before it. Output before that is
/// dropped, and the log says so: the last lines show how a trial ended.
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
    fn the_last_lines_of_a_log_are_read_without_colors_and_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        assert!(last_lines(&path).is_err());
        fs::write(&path, "50%\r\x1b[31mTraceback\x1b[0m\n\n  File \"a.py\"\n\x1b[0m\nKeyError: 'x'").unwrap();
        assert_eq!(last_lines(&path).unwrap(), ["50%", "Traceback", "  File \"a.py\"", "KeyError: 'x'"]);
        fs::write(&path, format!("{}\nlast\n", "x".repeat(100_000))).unwrap();
        assert_eq!(last_lines(&path).unwrap(), ["last"]);
        fs::write(&path, [b"\xff\n".repeat(20_000), b"end".to_vec()].concat()).unwrap();
        assert_eq!(last_lines(&path).unwrap().last().unwrap(), "end");
    }

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
