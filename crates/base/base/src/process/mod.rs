//! Programs whose output is read, and that may neither take too long nor write too much.

pub(crate) mod sys;
pub mod tree;

use std::io::{self, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::tie_to_parent;

/// Maximum time to wait for the pipe of standard error, which a grandchild may keep open.
const STDERR_GRACE: Duration = Duration::from_millis(500);

/// Why a program gave no output.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("it cannot be started: {0}")]
    Start(io::Error),
    #[error("its output cannot be read: {0}")]
    Read(io::Error),
    #[error("it did not answer in {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("its output is too long")]
    TooLong,
}

/// Runs a program with this short input and returns what it wrote. It is killed if it takes longer than `timeout`, or
/// writes more than `max_bytes` to standard output, and when this process ends.
pub fn bounded_output(
    command: &mut Command,
    input: &[u8],
    timeout: Duration,
    max_bytes: u64,
) -> Result<Output, OutputError> {
    tie_to_parent(command, Signal::KILL);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(OutputError::Start)?;
    let output = communicate(&mut child, input, timeout, max_bytes);
    if output.is_err() {
        // It may have ended by itself meanwhile.
        let _ = child.kill();
        let _ = child.wait();
    }
    output
}

fn communicate(
    child: &mut Child,
    input: &[u8],
    timeout: Duration,
    max_bytes: u64,
) -> Result<Output, OutputError> {
    let deadline = Instant::now() + timeout;
    let stdout = read_in_background(child.stdout.take(), max_bytes);
    let stderr = read_in_background(child.stderr.take(), max_bytes);
    if let Some(mut stdin) = child.stdin.take() {
        // A program that exits without reading its input has closed the pipe.
        let _ = stdin.write_all(input);
    }
    let stdout = match stdout.recv_timeout(timeout) {
        Ok(read) => read.map_err(OutputError::Read)?,
        Err(_) => return Err(OutputError::TimedOut(timeout)),
    };
    if u64::try_from(stdout.len()).is_ok_and(|length| length > max_bytes) {
        return Err(OutputError::TooLong);
    }
    let status = loop {
        match child.try_wait().map_err(OutputError::Read)? {
            Some(status) => break status,
            None if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            None => return Err(OutputError::TimedOut(timeout)),
        }
    };
    let stderr = stderr.recv_timeout(STDERR_GRACE).ok().and_then(Result::ok).unwrap_or_default();
    Ok(Output { status, stdout, stderr })
}

/// Reads one byte more than the limit at most. The thread ends with the pipe, which a grandchild may hold.
fn read_in_background(
    pipe: Option<impl Read + Send + 'static>,
    max_bytes: u64,
) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.map_or(Ok(0), |pipe| pipe.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes));
        // The receiver is gone if the program took too long.
        let _ = sender.send(read.map(|_| bytes));
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Duration) -> Result<Output, OutputError> {
        bounded_output(Command::new("/bin/sh").args(["-c", script]), b"in", timeout, 100)
    }

    #[test]
    fn input_goes_in_and_both_outputs_come_back() {
        let output = shell("cat; echo oops >&2; exit 3", Duration::from_secs(60)).unwrap();
        assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"in"[..], &b"oops\n"[..]));
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn a_program_that_never_ends_or_writes_too_much_is_killed() {
        let never = shell("exec /bin/sleep 100", Duration::from_millis(50));
        assert!(matches!(never, Err(OutputError::TimedOut(_))), "{never:?}");
        let endless = shell("while :; do echo more; done", Duration::from_secs(60));
        assert!(matches!(endless, Err(OutputError::TooLong)), "{endless:?}");
        let absent = bounded_output(&mut Command::new("/nowhere"), b"", Duration::from_secs(60), 1);
        assert!(matches!(absent, Err(OutputError::Start(_))));
    }
}
