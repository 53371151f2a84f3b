//! A worker's events of an attempt: the same lines in the attempt's file and in the pipe to the
//! sweep, in this order.
//!
//! Events of a few milliseconds are written together, because each write wakes the sweep.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use cudock_base::{FileError, Timestamp};

use super::protocol::{AttemptResult, MetricReport, WorkerEvent};

/// How long an event may wait for others.
const DELAY: Duration = Duration::from_millis(5);

/// The events of one attempt.
#[derive(Debug)]
pub(crate) struct Outbox {
    file: File,
    /// Bytes that are not in the file yet.
    unwritten: Vec<u8>,
    /// Bytes that were not sent to the sweep yet.
    unsent: Vec<u8>,
    /// When the first of them was added.
    since: Option<Instant>,
}

impl Outbox {
    /// Creates the file, in a directory that need not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, FileError> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(FileError::at("create directory", directory))?;
        }
        let file = File::create(path).map_err(FileError::at("create", path))?;
        Ok(Self { file, unwritten: Vec::new(), unsent: Vec::new(), since: None })
    }

    pub(crate) fn push(&mut self, event: &WorkerEvent) {
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        self.unwritten.extend_from_slice(&line);
        self.unsent.extend_from_slice(&line);
        self.since.get_or_insert_with(Instant::now);
    }

    /// How long events may still wait; none if there are none.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.since.map(|since| DELAY.saturating_sub(since.elapsed()))
    }

    /// Writes events that have waited long enough.
    pub(crate) fn flush_due(&mut self) {
        if self.due().is_some_and(|left| left.is_zero()) {
            // Bytes that a full disk does not take are kept for the next time.
            let _ = self.write();
            self.send();
        }
    }

    /// Writes all that is left, with how the attempt ended. It survives `kill -9`; it need not survive a power cut,
    /// because then the trial runs again.
    pub(crate) fn finish(mut self, result: AttemptResult) -> io::Result<()> {
        self.push(&WorkerEvent::Ended(result));
        self.write()?;
        self.send();
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.unwritten.is_empty() {
            match self.file.write(&self.unwritten) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => drop(self.unwritten.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send(&mut self) {
        send(&self.unsent);
        self.unsent.clear();
        self.since = None;
    }
}

/// Reports to the sweep that this worker holds its lock.
pub(crate) fn send_ready() -> io::Result<()> {
    let mut line = serde_json::to_vec(&WorkerEvent::Ready)?;
    line.push(b'\n');
    send(&line);
    Ok(())
}

/// Writes lines to the sweep. Errors are ignored: if the sweep is gone, the input ends.
fn send(lines: &[u8]) {
    let mut output = io::stdout().lock();
    let _ = output.write_all(lines).and_then(|()| output.flush());
}

/// The reports and the result of an attempt that began at this time; none if the file is not complete. An attempt that a
/// power cut removed from the journal has the same number as its successor, and another time.
pub(crate) fn read_attempt(path: &Path, starting: Timestamp) -> Option<(Vec<MetricReport>, AttemptResult)> {
    let mut reports = Vec::new();
    for line in BufReader::new(File::open(path).ok()?).lines() {
        match serde_json::from_str(&line.ok()?).ok()? {
            WorkerEvent::Ready | WorkerEvent::Started { .. } => {}
            WorkerEvent::Reported(more) => reports.extend(more),
            WorkerEvent::Ended(result) => return (result.starting == starting).then_some((reports, result)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use cudock_sweep::{AttemptEnd, TrialId};

    fn result(starting: u64) -> AttemptResult {
        AttemptResult {
            trial: TrialId(0),
            attempt: 1,
            starting: Timestamp::from_millis(starting),
            end: AttemptEnd::Exited { code: 0 },
            ran_ms: 5,
            interrupted: false,
            notes: Vec::new(),
            gpu_memory: Vec::new(),
        }
    }

    #[test]
    fn an_attempt_counts_only_if_its_file_is_complete_and_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trials/0/attempt-1.jsonl");
        let report = MetricReport { metric: "a".into(), interval: 1, step: None, value: f64::NAN };
        let mut outbox = Outbox::create(&path).unwrap();
        outbox.push(&WorkerEvent::Reported(vec![report]));
        assert!(outbox.due().is_some());
        outbox.push(&WorkerEvent::Ended(result(7)));
        outbox.write().unwrap();
        let (reports, read) = read_attempt(&path, Timestamp::from_millis(7)).unwrap();
        assert_eq!((reports.len(), read), (1, result(7)));
        assert_eq!(read_attempt(&path, Timestamp::from_millis(8)), None);
        let bytes = fs::read(&path).unwrap();
        for length in 0..bytes.len() - 1 {
            fs::write(&path, &bytes[..length]).unwrap();
            assert_eq!(read_attempt(&path, Timestamp::from_millis(7)), None, "{length} bytes");
        }
    }
}
