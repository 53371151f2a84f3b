//! Lines that an engine process writes to its standard output and error.
//!
//! They are read as fast as they are written, so that the engine never waits for its log. A program that prints without
//! end must not fill the log or memory: lines are cut, and only some of them per second are kept.

use std::io::{self, Read};
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest line in bytes; the rest of a longer one is dropped.
const LINE: usize = 8 << 10;
/// Lines of a stream that are kept within a period; the others are counted.
const LINES: usize = 100;
const PERIOD: Duration = Duration::from_secs(1);

/// Receives lines of a stream: `stdout` or `stderr`.
pub type OutputSink = Arc<dyn Fn(&'static str, &str) + Send + Sync>;

/// Reads what a process prints, until it and the processes it started have closed their ends.
pub(crate) fn read_output(child: &mut Child, sink: &OutputSink) -> io::Result<()> {
    if let Some(pipe) = child.stdout.take() {
        read_stream("stdout", pipe, Arc::clone(sink))?;
    }
    if let Some(pipe) = child.stderr.take() {
        read_stream("stderr", pipe, Arc::clone(sink))?;
    }
    Ok(())
}

fn read_stream(name: &'static str, mut pipe: impl Read + Send + 'static, sink: OutputSink) -> io::Result<()> {
    let read = move || {
        let mut lines = LineLimiter::new(Instant::now());
        let mut emit = |line: &str| sink(name, line);
        let mut buffer = vec![0; 64 << 10];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    lines.push(buffer.get(..length).unwrap_or_default(), Instant::now(), &mut emit);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        lines.finish(&mut emit);
    };
    thread::Builder::new().name(format!("engine {name}")).spawn(read).map(drop)
}

/// Splits output into lines, and limits their length and number.
struct LineLimiter {
    line: Vec<u8>,
    period: Instant,
    kept: usize,
    dropped: u64,
}

impl LineLimiter {
    fn new(now: Instant) -> Self {
        Self { line: Vec::new(), period: now, kept: 0, dropped: 0 }
    }

    fn push(&mut self, bytes: &[u8], now: Instant, emit: &mut dyn FnMut(&str)) {
        // Progress bars end lines with a carriage return only.
        for (index, part) in bytes.split(|byte| matches!(byte, b'\n' | b'\r')).enumerate() {
            if index > 0 {
                self.end_line(now, emit);
            }
            let room = LINE - self.line.len();
            self.line.extend_from_slice(part.get(..room).unwrap_or(part));
        }
    }

    fn end_line(&mut self, now: Instant, emit: &mut dyn FnMut(&str)) {
        if self.line.is_empty() {
            return;
        }
        if now.saturating_duration_since(self.period) >= PERIOD {
            self.report_dropped(emit);
            self.period = now;
            self.kept = 0;
        }
        self.kept += 1;
        if self.kept <= LINES {
            emit(&String::from_utf8_lossy(&self.line));
        } else {
            if self.dropped == 0 {
                emit("too many lines: the rest of this second is dropped");
            }
            self.dropped += 1;
        }
        self.line.clear();
    }

    fn report_dropped(&mut self, emit: &mut dyn FnMut(&str)) {
        if self.dropped > 0 {
            emit(&format!("{} lines dropped", self.dropped));
            self.dropped = 0;
        }
    }

    fn finish(mut self, emit: &mut dyn FnMut(&str)) {
        self.end_line(self.period, emit);
        self.report_dropped(emit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of output that arrives in parts, each so many milliseconds after the start.
    fn lines(parts: &[(u64, &[u8])]) -> Vec<String> {
        let start = Instant::now();
        let mut found = Vec::new();
        let mut limiter = LineLimiter::new(start);
        for (after, bytes) in parts {
            limiter.push(bytes, start + Duration::from_millis(*after), &mut |line: &str| {
                found.push(line.to_owned());
            });
        }
        limiter.finish(&mut |line: &str| found.push(line.to_owned()));
        found
    }

    #[test]
    fn lines_are_joined_from_parts_and_the_last_one_needs_no_end() {
        assert_eq!(lines(&[(0, b"one\r\ntw"), (1, b"o\n\n\rthr"), (2, b"ee")]), ["one", "two", "three"]);
        assert_eq!(lines(&[(0, b"a\xffb\n")]), ["a\u{fffd}b"]);
    }

    #[test]
    fn a_line_without_end_is_cut_and_takes_no_memory() {
        let part = b"x".repeat(100_000);
        let parts: Vec<(u64, &[u8])> = vec![(0, &part); 3];
        assert_eq!(lines(&parts), ["x".repeat(LINE)]);
    }

    #[test]
    fn lines_beyond_the_limit_are_counted_and_the_next_second_has_room_again() {
        let many = b"line\n".repeat(LINES + 7);
        let found = lines(&[(0, &many), (999, b"late\n"), (1000, b"next\n"), (1001, &many)]);
        let count = |wanted: &str| found.iter().filter(|line| *line == wanted).count();
        assert_eq!(count("line"), LINES + LINES - 1);
        assert_eq!(count("late"), 0);
        assert_eq!(
            found.get(LINES..LINES + 3).unwrap(),
            ["too many lines: the rest of this second is dropped", "8 lines dropped", "next"]
        );
        assert_eq!(found.last().unwrap(), "8 lines dropped");
    }
}
