//! A server under test: `cudock serve` as a child process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use cudock_base::tie_to_parent;
use cudock_loadgen::{LoadError, Prepared, RequestOptions, ServerUrl, prepare};
use rustix::process::{Pid, Signal, kill_process};

/// How often a wait looks for an interrupt.
const POLL: Duration = Duration::from_millis(50);
/// How long a server may take to end before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a server cannot be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrialError {
    #[error("interrupted")]
    Interrupted,
    /// The reason that the server printed.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// A server that is ready; dropping it ends the process.
pub(crate) struct TrialServer {
    process: ServerProcess,
    pub(crate) requests: Prepared,
}

impl TrialServer {
    /// Starts a server whose `[serve]` is that of `manifest`, which it reads from standard input.
    pub(crate) fn start(
        command: Command,
        manifest: &str,
        requests: &RequestOptions<'_>,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Self, TrialError> {
        let deadline = Instant::now() + limit;
        let mut process = ServerProcess::spawn(command, manifest)?;
        let url = process.wait_until_ready(deadline, interrupted)?;
        let requests = prepare(requests, &url.parse::<ServerUrl>()?)?;
        Ok(Self { process, requests })
    }

    /// Whether the process is still there.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.process.child.try_wait(), Ok(None))
    }
}

struct ServerProcess {
    child: Child,
    lines: Receiver<String>,
}

impl ServerProcess {
    fn spawn(mut command: Command, manifest: &str) -> Result<Self, TrialError> {
        let failed = |error| TrialError::Failed(format!("cannot start the server: {error}"));
        command.args(["--settings", "/dev/stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        // If the search is killed, its server ends by itself.
        tie_to_parent(&mut command, Signal::TERM);
        let mut child = command.spawn().map_err(failed)?;
        let (sender, lines) = mpsc::channel();
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let process = Self { child, lines };
        if let Some(stderr) = stderr {
            thread::Builder::new()
                .name("server log".to_owned())
                .spawn(move || read_log(stderr, &sender))
                .map_err(failed)?;
        }
        if let Some(mut stdin) = stdin {
            // A server that ended at once says why in its log.
            let _ = stdin.write_all(manifest.as_bytes());
        }
        Ok(process)
    }

    /// Waits for the line that says that models are loaded; returns the server's URL.
    fn wait_until_ready(
        &mut self,
        deadline: Instant,
        interrupted: &AtomicBool,
    ) -> Result<String, TrialError> {
        let mut url = None;
        let mut error = None;
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Err(TrialError::Interrupted);
            }
            match self.lines.recv_timeout(POLL) {
                Ok(line) => {
                    if let Some(address) = line.strip_prefix("listening on ") {
                        url = Some(address.to_owned());
                    } else if line.starts_with("ready ") {
                        return url.ok_or_else(|| TrialError::Failed("the server has no address".to_owned()));
                    } else if error.is_none() || line.starts_with("error: ") {
                        error = Some(line);
                    }
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(TrialError::Failed("timed out while starting".to_owned()));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let reason = error.unwrap_or_else(|| "the server ended without a message".to_owned());
                    return Err(TrialError::Failed(reason.trim_start_matches("error: ").to_owned()));
                }
            }
        }
    }
}

/// Reads the log to its end, so that the server never waits for a reader.
fn read_log(stderr: ChildStderr, lines: &Sender<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        // Lines after the start have no reader.
        let _ = lines.send(line);
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let deadline = Instant::now() + END_TIMEOUT;
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str, limit: Duration, interrupted: bool) -> Result<String, TrialError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut process = ServerProcess::spawn(command, "[serve]\n")?;
        process.wait_until_ready(Instant::now() + limit, &AtomicBool::new(interrupted))
    }

    #[test]
    fn a_server_is_ready_when_it_says_so() {
        let minute = Duration::from_secs(60);
        let ready =
            "read line; echo \"listening on http://127.0.0.1:1/$line\" >&2; echo 'ready m: open' >&2; cat";
        assert_eq!(start(ready, minute, false).unwrap(), "http://127.0.0.1:1/[serve]");
        for (script, reason) in [
            ("echo 'hello' >&2; echo 'error: out of memory' >&2; echo 'hint: none' >&2", "out of memory"),
            ("echo 'killed' >&2", "killed"),
            ("exit 3", "the server ended without a message"),
            ("echo 'ready m' >&2", "the server has no address"),
        ] {
            assert_eq!(start(script, minute, false).unwrap_err().to_string(), reason, "{script}");
        }
        let slow = start("exec sleep 60", Duration::ZERO, false).unwrap_err();
        assert_eq!(slow.to_string(), "timed out while starting");
        assert!(matches!(start("exec sleep 60", minute, true), Err(TrialError::Interrupted)));
    }
}
