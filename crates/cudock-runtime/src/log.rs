//! Logs of containers: one JSON object per line, in the format of docker's `json-file` driver.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cudock_base::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::LogRequest;
use crate::error::{OnError, RuntimeError};

/// A line, or a part of one that was too long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The text, including its line end if it has one.
    pub log: String,
    /// `stdout` or `stderr`.
    pub stream: String,
    pub time: String,
}

impl LogLine {
    pub(crate) fn milliseconds(&self) -> Option<u64> {
        Timestamp::parse(&self.time)?.millis()
    }
}

/// Longer lines are split.
const MAX_LINE: usize = 16 << 10;

/// A log of this size is rotated; one rotated file is kept.
const MAX_FILE: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct LogWriter {
    path: PathBuf,
    file: File,
    written: u64,
    unfinished: [Vec<u8>; 2],
    /// Entries that are not written yet: those of one call are written together.
    entries: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
        }
    }
}

impl LogWriter {
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

    /// Appends output. A full disk must not stop the container, so callers ignore errors.
    pub(crate) fn write(&mut self, stream: Stream, mut bytes: &[u8]) -> io::Result<()> {
        let tail = tail(stream);
        while !bytes.is_empty() {
            let [out, err] = &mut self.unfinished;
            let pending = if stream == Stream::Out { out } else { err };
            let room = MAX_LINE - pending.len().min(MAX_LINE);
            let end = bytes.iter().take(room).position(|&byte| byte == b'\n').map(|at| at + 1);
            let (now, later) = bytes.split_at(end.unwrap_or(room.min(bytes.len())));
            bytes = later;
            if pending.is_empty() && end.is_some() {
                self.entry(now, &tail)?;
                continue;
            }
            pending.extend_from_slice(now);
            if end.is_some() || pending.len() >= MAX_LINE {
                let line = std::mem::take(pending);
                self.entry(&line, &tail)?;
            }
        }
        self.flush()
    }

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
        if self.written + self.entries.len() as u64 <= MAX_FILE {
            return Ok(());
        }
        // The file is full without this entry, which goes into the next.
        let next = self.entries.split_off(before);
        self.flush()?;
        self.entries = next;
        fs::rename(&self.path, rotated(&self.path))?;
        self.file = File::options().create(true).append(true).open(&self.path)?;
        self.written = 0;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.file.write_all(&self.entries);
        // Dropped even if it could not be written: it would grow without bound on a full disk.
        self.written += self.entries.len() as u64;
        self.entries.clear();
        outcome
    }
}

/// The end of an entry: the rest of a [`LogLine`] as JSON.
fn tail(stream: Stream) -> String {
    format!(",\"stream\":\"{}\",\"time\":\"{}\"}}\n", stream.name(), timestamp())
}

/// The current time with nanoseconds, as docker writes it; lines of several containers are merged by it.
fn timestamp() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let text = Timestamp::from_millis(millis).to_string();
    format!("{}{:06}Z", text.trim_end_matches('Z'), since.subsec_nanos() % 1_000_000)
}

fn rotated(path: &Path) -> PathBuf {
    path.with_extension("jsonl.1")
}

/// Reads the log of a container from its beginning, and follows it as it grows.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    file: Option<BufReader<File>>,
    inode: u64,
    partial: String,
}

impl LogReader {
    /// The whole log, beginning with the rotated file.
    pub fn open(path: &Path) -> Self {
        let old = File::open(rotated(path)).ok();
        let mut reader = Self { path: path.to_owned(), file: None, inode: 0, partial: String::new() };
        match old {
            Some(old) => reader.take_up(old),
            None => reader.reopen(),
        }
        reader
    }

    pub fn next_line(&mut self) -> Result<Option<LogLine>, RuntimeError> {
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
                    // The writer was killed in the middle of it.
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

    /// A reader that begins with the first line of the requested tail.
    pub(crate) fn for_request(path: &Path, request: LogRequest) -> Result<Self, RuntimeError> {
        let mut reader = Self::open(path);
        let Some(count) = request.tail else { return Ok(reader) };
        let mut total = 0_usize;
        while let Some(line) = reader.next_line()? {
            total += usize::from(request.contains(&line));
        }
        reader = Self::open(path);
        let mut skip = total.saturating_sub(count);
        while skip > 0 {
            let Some(line) = reader.next_line()? else { break };
            skip -= usize::from(request.contains(&line));
        }
        Ok(reader)
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

/// Writes text of a line to the standard stream that it came from.
pub(crate) fn print(line: &LogLine, text: &str) -> io::Result<()> {
    if line.stream == "stderr" {
        io::stderr().write_all(text.as_bytes())
    } else {
        io::stdout().write_all(text.as_bytes())
    }
}

pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Reads what is available; 0 at the end.
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
    use super::*;

    fn log() -> (tempfile::TempDir, PathBuf, LogWriter) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        let writer = LogWriter::open(&path).unwrap();
        (directory, path, writer)
    }

    fn all(reader: &mut LogReader) -> Vec<String> {
        std::iter::from_fn(|| reader.next_line().unwrap()).map(|line| line.log).collect()
    }

    #[test]
    fn lines_are_read_as_written_however_they_arrive() {
        let (_directory, path, mut writer) = log();
        for piece in ["a", "b\nc", "\n", "\n", "last"] {
            writer.write(Stream::Out, piece.as_bytes()).unwrap();
        }
        writer.write(Stream::Err, b"oops\n").unwrap();
        writer.finish().unwrap();
        assert_eq!(all(&mut LogReader::open(&path)), ["ab\n", "c\n", "\n", "oops\n", "last"]);
    }

    #[test]
    fn a_line_without_end_is_split() {
        let (_directory, path, mut writer) = log();
        writer.write(Stream::Out, &vec![b'x'; MAX_LINE * 2 + 5]).unwrap();
        writer.finish().unwrap();
        let lengths: Vec<usize> = all(&mut LogReader::open(&path)).iter().map(String::len).collect();
        assert_eq!(lengths, [MAX_LINE, MAX_LINE, 5]);
    }

    #[test]
    fn a_reader_continues_after_a_rotation() {
        let (_directory, path, mut writer) = log();
        writer.write(Stream::Out, b"one\n").unwrap();
        let mut reader = LogReader::open(&path);
        assert_eq!(all(&mut reader).len(), 1);
        writer.written = MAX_FILE;
        writer.write(Stream::Out, b"two\n").unwrap();
        let line = reader.next_line().unwrap().unwrap();
        assert_eq!((line.stream.as_str(), line.log.as_str()), ("stdout", "two\n"));
        assert!(reader.next_line().unwrap().is_none());
        assert_eq!(all(&mut LogReader::open(&path)).len(), 2);
    }

    #[test]
    fn only_the_last_lines_are_read_when_asked() {
        let (_directory, path, mut writer) = log();
        writer.write(Stream::Out, b"1\n2\n3\n4\n").unwrap();
        let request = LogRequest { tail: Some(2), ..LogRequest::default() };
        let mut reader = LogReader::for_request(&path, request).unwrap();
        assert_eq!(all(&mut reader), ["3\n", "4\n"]);
    }
}
