//! Logs of containers: one JSON object per line, in the format of docker's `json-file` driver.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cudock_base::Timestamp;
use cudock_base::files::remove_optional;
use serde::{Deserialize, Serialize};

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

/// The lines of a log to print.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRequest {
    pub follow: bool,
    pub tail: Option<usize>,
    /// Whether each line begins with its time.
    pub timestamps: bool,
    /// Only lines since this time, in milliseconds since 1970.
    pub since: Option<u64>,
    pub until: Option<u64>,
}

impl LogRequest {
    pub(crate) fn contains(&self, line: &LogLine) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        let Some(time) = line.milliseconds() else { return true };
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }

    /// Whether a line, and so every later one, is after the requested period.
    pub(crate) fn is_past(&self, line: &LogLine) -> bool {
        self.until.zip(line.milliseconds()).is_some_and(|(until, time)| time >= until)
    }
}

/// Maximum length of a line; longer ones are split.
const MAX_LINE: usize = 16 << 10;

/// How much of a log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogLimits {
    /// A file of this size is rotated.
    pub(crate) max_bytes: u64,
    /// All files, with the one that is written to.
    pub(crate) max_files: u32,
}

#[derive(Debug)]
pub(crate) struct LogWriter {
    path: PathBuf,
    limits: LogLimits,
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
    pub(crate) fn open(path: &Path, limits: LogLimits) -> Result<Self, RuntimeError> {
        let file = File::options().create(true).append(true).open(path).on("cannot open the log", path)?;
        let written = file.metadata().on("cannot read", path)?.len();
        Ok(Self {
            path: path.to_owned(),
            limits,
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
        let is_first = self.written == 0 && before == 0;
        if is_first || self.written.saturating_add(self.entries.len() as u64) <= self.limits.max_bytes {
            return Ok(());
        }
        // The file is full without this entry, which goes into the next.
        let next = self.entries.split_off(before);
        self.flush()?;
        self.entries = next;
        self.rotate()?;
        self.file = File::options().create(true).append(true).open(&self.path)?;
        self.written = 0;
        Ok(())
    }

    /// Gives each file the name of the next older one. The oldest is removed.
    fn rotate(&self) -> io::Result<()> {
        let last = self.limits.max_files.saturating_sub(1);
        remove_optional(&rotated(&self.path, last))?;
        for number in (0..last).rev() {
            match fs::rename(rotated(&self.path, number), rotated(&self.path, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
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

/// The file of a log with this number: 0 is the one that is written to, 1 the one before it.
fn rotated(path: &Path, number: u32) -> PathBuf {
    if number == 0 { path.to_owned() } else { path.with_extension(format!("jsonl.{number}")) }
}

/// The files of a log with their inodes, the oldest first.
fn files(path: &Path) -> Vec<(u64, File)> {
    // A gap is left by a writer that was killed while it rotated.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let number = |entry: fs::DirEntry| {
        let entry = entry.file_name().into_string().ok()?;
        let number = entry.strip_prefix(&name)?;
        if number.is_empty() { Some(0) } else { number.strip_prefix('.')?.parse().ok() }
    };
    let entries = path.parent().and_then(|directory| fs::read_dir(directory).ok()).into_iter().flatten();
    let mut numbers: Vec<u32> = entries.flatten().filter_map(number).collect();
    // The newest is opened first: a file that is rotated meanwhile is opened twice rather than not at all.
    numbers.sort_unstable();
    let open = |number| {
        let file = File::open(rotated(path, number)).ok()?;
        Some((file.metadata().ok()?.ino(), file))
    };
    let mut files: Vec<(u64, File)> = numbers.into_iter().filter_map(open).collect();
    files.reverse();
    files.dedup_by_key(|(inode, _)| *inode);
    files
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
    /// The whole log, beginning with the oldest file.
    pub fn open(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, inode: 0, partial: String::new() }
    }

    pub fn next_line(&mut self) -> Result<Option<LogLine>, RuntimeError> {
        loop {
            if self.file.is_none() {
                self.open_next();
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
                self.open_next();
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

    /// Opens the file after the one that was read, or the oldest if that is gone.
    fn open_next(&mut self) {
        let mut files = files(&self.path);
        let read = files.iter().position(|(inode, _)| *inode == self.inode);
        let next = read.map_or(0, |index| index + 1);
        self.file = None;
        if next < files.len() {
            let (inode, file) = files.swap_remove(next);
            self.inode = inode;
            self.file = Some(BufReader::new(file));
        }
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
        let writer = LogWriter::open(&path, LogLimits { max_bytes: 64 << 20, max_files: 2 }).unwrap();
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
        writer.written = writer.limits.max_bytes;
        writer.write(Stream::Out, b"two\n").unwrap();
        let line = reader.next_line().unwrap().unwrap();
        assert_eq!((line.stream.as_str(), line.log.as_str()), ("stdout", "two\n"));
        assert!(reader.next_line().unwrap().is_none());
        assert_eq!(all(&mut LogReader::open(&path)).len(), 2);
    }

    #[test]
    fn only_the_last_lines_are_read_when_requested() {
        let (_directory, path, mut writer) = log();
        writer.write(Stream::Out, b"1\n2\n3\n4\n").unwrap();
        let request = LogRequest { tail: Some(2), ..LogRequest::default() };
        let mut reader = LogReader::for_request(&path, request).unwrap();
        assert_eq!(all(&mut reader), ["3\n", "4\n"]);
    }

    #[test]
    fn as_many_files_as_requested_are_kept_and_read_in_order() {
        let lines =
            |range: std::ops::Range<u32>| range.map(|number| format!("{number}\n")).collect::<Vec<_>>();
        for (max_files, kept) in [(1, 10..10), (2, 8..10), (3, 6..10)] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("log.jsonl");
            // Two entries fit into a file.
            let limits = LogLimits { max_bytes: 150, max_files };
            let mut writer = LogWriter::open(&path, limits).unwrap();
            let mut reader = LogReader::open(&path);
            let mut followed = Vec::new();
            for number in 0..11 {
                writer.write(Stream::Out, format!("{number}\n").as_bytes()).unwrap();
                followed.extend(all(&mut reader));
            }
            assert_eq!(followed, lines(0..11), "one who follows it misses nothing");
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), max_files as usize);
            let expected = [lines(kept), vec!["10\n".to_owned()]].concat();
            assert_eq!(all(&mut LogReader::open(&path)), expected, "{max_files} files");
        }
    }

    #[test]
    fn a_line_longer_than_a_file_is_kept_and_a_slow_reader_goes_on_with_the_oldest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        let mut writer = LogWriter::open(&path, LogLimits { max_bytes: 10, max_files: 3 }).unwrap();
        writer.write(Stream::Out, b"first\n").unwrap();
        let mut reader = LogReader::open(&path);
        assert_eq!(all(&mut reader), ["first\n"]);
        for line in ["a\n", "b\n", "c\n", "d\n"] {
            writer.write(Stream::Out, line.as_bytes()).unwrap();
        }
        assert_eq!(all(&mut reader), ["b\n", "c\n", "d\n"]);
    }
}
