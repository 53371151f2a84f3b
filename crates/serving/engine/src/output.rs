//! Lines that an engine process writes to its standard output and error.
//!
//! They are read as fast as they are written, so that the engine never waits for its log. A program that prints without
//! end must not fill the log or memory: lines are cut, and only some of them per second are kept.

use cudock_base::bug::Parts;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{read, retry_on_intr};

/// Longest line in bytes; the rest of a longer one is dropped.
const LINE: usize = 8 << 10;
/// Lines of a stream that are kept within a period; the others are counted.
const LINES: usize = 100;
const PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of bytes that are still read when the engine is gone: more than pipes hold.
const MAX_REST: usize = 2 << 20;

/// Receives lines of a stream: `stdout` or `stderr`.
pub type OutputSink = Arc<dyn Fn(&'static str, &str) + Send + Sync>;

/// The thread that reads the output of an engine and of the processes it started. It ends when all
/// of them have closed their ends, or when this is dropped.
pub(crate) struct OutputReader {
    /// Closed when this is dropped, which the thread sees.
    _open: PipeWriter,
}

impl OutputReader {
    pub(crate) fn start(child: &mut Child, sink: &OutputSink) -> io::Result<Self> {
        let (closed, open) = io::pipe()?;
        let pipes = [
            ("stdout", child.stdout.take().map(OwnedFd::from)),
            ("stderr", child.stderr.take().map(OwnedFd::from)),
        ];
        let streams: Vec<OutputStream> =
            pipes.into_iter().filter_map(|(name, pipe)| Some(OutputStream::new(name, pipe?))).collect();
        let sink = Arc::clone(sink);
        let read = move || read_streams(streams, &closed, &sink);
        thread::Builder::new().name("engine output".to_owned()).spawn(read)?;
        Ok(Self { _open: open })
    }
}

struct OutputStream {
    name: &'static str,
    pipe: OwnedFd,
    lines: LineLimiter,
}

impl OutputStream {
    fn new(name: &'static str, pipe: OwnedFd) -> Self {
        Self { name, pipe, lines: LineLimiter::new(Instant::now()) }
    }
}

/// Reads until all streams have ended; once `closed` has, only what is in them already.
fn read_streams(mut streams: Vec<OutputStream>, closed: &PipeReader, sink: &OutputSink) {
    let mut buffer = vec![0; 64 << 10];
    let mut rest = MAX_REST;
    while !streams.is_empty() && rest > 0 {
        let mut fds: Vec<_> = streams.iter().map(|stream| PollFd::new(&stream.pipe, PollFlags::IN)).collect();
        fds.push(PollFd::new(closed, PollFlags::IN));
        if retry_on_intr(|| poll(&mut fds, None)).is_err() {
            break;
        }
        let mut ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready.pop() == Some(true) {
            let Some(left) = rest.checked_sub(buffer.len()).filter(|_| ready.contains(&true)) else { break };
            rest = left;
        }
        let mut ready = ready.into_iter();
        streams.retain_mut(|stream| {
            let OutputStream { name, pipe, lines } = stream;
            if ready.next() != Some(true) {
                return true;
            }
            let length = retry_on_intr(|| read(&*pipe, &mut buffer)).unwrap_or(0);
            let mut emit = |line: &str| sink(name, line);
            lines.push(buffer.part(..length), Instant::now(), &mut emit);
            if length == 0 {
                lines.finish(&mut emit);
            }
            length > 0
        });
    }
    for OutputStream { name, mut lines, .. } in streams {
        lines.finish(&mut |line: &str| sink(name, line));
    }
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

    fn finish(&mut self, emit: &mut dyn FnMut(&str)) {
        self.end_line(self.period, emit);
        self.report_dropped(emit);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::Mutex;

    use cudock_testkit::client::eventually;

    use super::*;

    #[test]
    fn reading_ends_although_somebody_else_has_the_pipe() {
        let mut child = Command::new("sh");
        let script = "sleep 1000 & echo $!; echo last >&2";
        let mut child =
            child.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let found = Arc::clone(&lines);
        let sink: OutputSink = Arc::new(move |_, line| found.lock().unwrap().push(line.to_owned()));
        let reader = OutputReader::start(&mut child, &sink).unwrap();
        drop(sink);
        child.wait().unwrap();
        // Whatever was printed before is read.
        drop(reader);
        eventually("the thread has ended", || Arc::strong_count(&lines) == 1);
        let mut lines = Arc::into_inner(lines).unwrap().into_inner().unwrap();
        lines.retain(|line| line != "last");
        let sleeping: u32 = lines.concat().parse().unwrap();
        assert!(Command::new("kill").arg(sleeping.to_string()).status().unwrap().success());
    }

    /// The lines of output that arrives in parts, each at its number of milliseconds after the start.
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
