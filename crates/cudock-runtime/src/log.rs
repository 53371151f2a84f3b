//! What a container wrote, kept for later: one JSON object a line, in the form docker's `json-file` has, so that tools
//! that read those read these.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::stamp;
use crate::error::{OnFile, RuntimeError};

/// A line, or a piece of one that was too long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The text, with its line end if it had one.
    pub log: String,
    /// stdout or stderr.
    pub stream: String,
    /// When it came.
    pub time: String,
}

/// Pieces of lines are kept in memory up to here.
const LONGEST: usize = 16 << 10;

/// A file of this size is put aside, and the one that was put aside before is forgotten.
const FULL: u64 = 64 << 20;

/// Writes what a container writes.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    file: File,
    written: u64,
    unfinished: [Vec<u8>; 2],
    /// Entries that were made and not written yet: those of one call go to the file together.
    entries: Vec<u8>,
}

/// Which of its two outputs a container wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

impl Stream {
    fn word(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
        }
    }
}

impl Writer {
    pub(crate) fn open(path: &Path) -> Result<Self, RuntimeError> {
        let file = File::options().create(true).append(true).open(path).on("cannot open the log", path)?;
        let written = file.metadata().on("cannot read", path)?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            written,
            unfinished: [Vec::new(), Vec::new()],
            entries: Vec::new(),
        })
    }

    /// Takes in what was written. A full disk must not stop the container, so failures are for the caller to count.
    pub(crate) fn write(&mut self, stream: Stream, mut bytes: &[u8]) -> io::Result<()> {
        let tail = tail(stream);
        while !bytes.is_empty() {
            let [out, err] = &mut self.unfinished;
            let pending = if stream == Stream::Out { out } else { err };
            let room = LONGEST - pending.len().min(LONGEST);
            let end = bytes.iter().take(room).position(|&byte| byte == b'\n').map(|at| at + 1);
            let (now, later) = bytes.split_at(end.unwrap_or(room.min(bytes.len())));
            bytes = later;
            if pending.is_empty() && end.is_some() {
                self.entry(now, &tail)?;
                continue;
            }
            pending.extend_from_slice(now);
            if end.is_some() || pending.len() >= LONGEST {
                let line = std::mem::take(pending);
                self.entry(&line, &tail)?;
            }
        }
        self.flush()
    }

    /// Writes what is left of lines without an end.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        for stream in [Stream::Out, Stream::Err] {
            let [out, err] = &mut self.unfinished;
            let line = std::mem::take(if stream == Stream::Out { out } else { err });
            if !line.is_empty() {
                self.entry(&line, &tail(stream))?;
            }
        }
        self.flush()
    }

    fn entry(&mut self, line: &[u8], tail: &str) -> io::Result<()> {
        let before = self.entries.len();
        self.entries.extend_from_slice(br#"{"log":"#);
        serde_json::to_writer(&mut self.entries, &*String::from_utf8_lossy(line))?;
        self.entries.extend_from_slice(tail.as_bytes());
        if self.written + self.entries.len() as u64 <= FULL {
            return Ok(());
        }
        // The file is full without this one, which goes to the next.
        let next = self.entries.split_off(before);
        self.flush()?;
        self.entries = next;
        fs::rename(&self.path, aside(&self.path))?;
        self.file = File::options().create(true).append(true).open(&self.path)?;
        self.written = 0;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.file.write_all(&self.entries);
        // What could not be written is lost: kept, it would grow without bound on a full disk.
        self.written += self.entries.len() as u64;
        self.entries.clear();
        outcome
    }
}

/// How the entries end that are made at this moment: the rest of a [`Line`] as JSON.
fn tail(stream: Stream) -> String {
    format!(",\"stream\":\"{}\",\"time\":\"{}\"}}\n", stream.word(), stamp())
}

fn aside(path: &Path) -> PathBuf {
    path.with_extension("jsonl.1")
}

/// Reads a container's log from its beginning, and on as it grows.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: Option<BufReader<File>>,
    inode: u64,
    partial: String,
}

impl Reader {
    /// The whole log: first what was put aside, then the rest.
    pub fn open(path: &Path) -> Self {
        let old = File::open(aside(path)).ok();
        let mut reader = Self { path: path.to_owned(), file: None, inode: 0, partial: String::new() };
        match old {
            Some(old) => reader.take_up(old),
            None => reader.reopen(),
        }
        reader
    }

    /// The next line; none where there is none yet.
    pub fn next_line(&mut self) -> Result<Option<Line>, RuntimeError> {
        loop {
            if self.file.is_none() {
                self.reopen();
            }
            let Some(file) = &mut self.file else { return Ok(None) };
            let read = file.read_line(&mut self.partial).on("cannot read the log", &self.path)?;
            if read > 0 && self.partial.ends_with('\n') {
                let text = std::mem::take(&mut self.partial);
                match serde_json::from_str(&text) {
                    Ok(line) => return Ok(Some(line)),
                    // Written by a process that was killed while it wrote.
                    Err(_) => continue,
                }
            }
            if read == 0 {
                let now = fs::metadata(&self.path).map(|file| file.ino()).unwrap_or_default();
                if now == self.inode || now == 0 {
                    return Ok(None);
                }
                self.partial.clear();
                self.file = None;
            }
        }
    }

    /// Moves on so that at most `count` lines are left to read.
    pub fn skip_to_last(&mut self, count: usize) -> Result<(), RuntimeError> {
        let mut total = 0_usize;
        while self.next_line()?.is_some() {
            total += 1;
        }
        *self = Self::open(&self.path);
        for _ in count..total {
            self.next_line()?;
        }
        Ok(())
    }

    fn reopen(&mut self) {
        if let Ok(file) = File::open(&self.path) {
            self.take_up(file);
        }
    }

    fn take_up(&mut self, mut file: File) {
        self.inode = file.metadata().map(|file| file.ino()).unwrap_or_default();
        let _ = file.seek(SeekFrom::Start(0));
        self.file = Some(BufReader::new(file));
    }
}

/// How long to wait before looking for more of a log.
pub const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Reads what is there now without blocking longer than for it; the number of bytes, none at the end.
pub(crate) fn read_some(mut from: impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn all(reader: &mut Reader) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        while let Some(line) = reader.next_line().unwrap() {
            lines.push((line.stream, line.log));
        }
        lines
    }

    #[test]
    fn lines_come_back_as_they_were_written_whatever_the_pieces() {
        let directory = directory();
        let path = directory.path().join("log.jsonl");
        let mut writer = Writer::open(&path).unwrap();
        for piece in ["a", "b\nc", "\n", "\n", "last"] {
            writer.write(Stream::Out, piece.as_bytes()).unwrap();
        }
        writer.write(Stream::Err, b"oops\n").unwrap();
        writer.finish().unwrap();
        let lines: Vec<String> = all(&mut Reader::open(&path)).into_iter().map(|(_, log)| log).collect();
        assert_eq!(lines, ["ab\n", "c\n", "\n", "oops\n", "last"]);
    }

    #[test]
    fn a_line_without_end_is_kept_in_pieces() {
        let directory = directory();
        let path = directory.path().join("log.jsonl");
        let mut writer = Writer::open(&path).unwrap();
        writer.write(Stream::Out, &vec![b'x'; LONGEST * 2 + 5]).unwrap();
        writer.finish().unwrap();
        let lengths: Vec<usize> = all(&mut Reader::open(&path)).iter().map(|(_, log)| log.len()).collect();
        assert_eq!(lengths, [LONGEST, LONGEST, 5]);
    }

    #[test]
    fn a_reader_goes_on_where_the_writer_put_a_full_file_aside() {
        let directory = directory();
        let path = directory.path().join("log.jsonl");
        let mut writer = Writer::open(&path).unwrap();
        writer.write(Stream::Out, b"one\n").unwrap();
        let mut reader = Reader::open(&path);
        assert_eq!(all(&mut reader).len(), 1);
        writer.written = FULL;
        writer.write(Stream::Out, b"two\n").unwrap();
        assert_eq!(all(&mut reader), [("stdout".to_owned(), "two\n".to_owned())]);
        assert_eq!(all(&mut Reader::open(&path)).len(), 2);
    }

    #[test]
    fn only_the_last_lines_are_read_when_asked() {
        let directory = directory();
        let path = directory.path().join("log.jsonl");
        let mut writer = Writer::open(&path).unwrap();
        writer.write(Stream::Out, b"1\n2\n3\n4\n").unwrap();
        let mut reader = Reader::open(&path);
        reader.skip_to_last(2).unwrap();
        let lines: Vec<String> = all(&mut reader).into_iter().map(|(_, log)| log).collect();
        assert_eq!(lines, ["3\n", "4\n"]);
    }
}
