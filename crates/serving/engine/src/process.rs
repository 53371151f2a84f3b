//! The engine process, as seen by the server: its owner is the server's child.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cudock_base::lock;
use cudock_base::process::tree::kill_marked;
use rustix::io::Errno;
use signal_hook::consts::{SIGKILL, SIGTERM};

use crate::EngineError;
use crate::channel::{CancelRequest, send_message};
use crate::output::{OutputReader, OutputSink};

/// Interval and number of checks for an owner that must exit, before it is killed.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(2);
const EXIT_POLLS: usize = 500;

/// An engine process and everything that it has started, which end when this is dropped.
pub(crate) struct EngineProcess {
    state: Mutex<ProcessState>,
    /// The engine's owner ends everything when this stream closes, and closes its own end when nothing is left.
    control: Mutex<UnixStream>,
    /// Ends with this, even if other processes have the pipes that it reads.
    output: Option<OutputReader>,
    mark: EngineMark,
}

/// A variable of all processes of an engine. If the owner itself is killed, those that are left are found by it.
pub(crate) struct EngineMark(PathBuf);

impl EngineMark {
    const VARIABLE: &str = "CUDOCK_ENGINE";

    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(format!("/{}-{time}-{number}", std::process::id()).into())
    }

    pub(crate) fn put(&self, command: &mut Command) {
        command.env(Self::VARIABLE, self.0.join("engine"));
    }

    fn kill_all(&self) {
        kill_marked(Self::VARIABLE, &self.0);
    }
}

struct ProcessState {
    owner: Child,
    exit_reason: Option<ExitReason>,
}

/// How an engine ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExitReason {
    pub(crate) text: String,
    /// Whether it was a signal that others send.
    is_kill: bool,
}

impl ExitReason {
    fn because(reason: &str) -> Self {
        Self { text: reason.to_owned(), is_kill: false }
    }

    pub(crate) fn error(self) -> EngineError {
        if self.is_kill { EngineError::Killed(self.text) } else { EngineError::Died(self.text) }
    }
}

impl EngineProcess {
    pub(crate) fn new(owner: Child, control: UnixStream, mark: EngineMark) -> Self {
        Self {
            state: Mutex::new(ProcessState { owner, exit_reason: None }),
            control: Mutex::new(control),
            output: None,
            mark,
        }
    }

    /// Reads what it prints.
    pub(crate) fn read_output(&mut self, sink: &OutputSink) -> io::Result<()> {
        self.output = Some(OutputReader::start(&mut lock(&self.state).owner, sink)?);
        Ok(())
    }

    /// How it exited, if it is known to have.
    pub(crate) fn exit_reason(&self) -> Option<ExitReason> {
        lock(&self.state).exit_reason.clone()
    }

    /// Requests the cancellation of a batch. A process that is exiting need not receive it.
    pub(crate) fn cancel(&self, request: &CancelRequest) {
        let _ = send_message(&mut lock(&self.control), request);
    }

    /// Whether it has exited. An error other than "no such child" does not mean that it has.
    pub(crate) fn has_exited(&self) -> bool {
        let mut state = lock(&self.state);
        if state.exit_reason.is_some() {
            return true;
        }
        match state.owner.try_wait() {
            Ok(Some(status)) => state.exit_reason = Some(self.exit_reason_of(status)),
            // Reaped elsewhere, for example because SIGCHLD is ignored.
            Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => {
                state.exit_reason = Some(ExitReason::because(UNKNOWN));
            }
            Ok(None) | Err(_) => {}
        }
        state.exit_reason.is_some()
    }

    /// Ends it, unless it has exited, and returns how it exited: by itself, or for `reason`.
    pub(crate) fn stop(&self, reason: &str) -> ExitReason {
        let mut state = lock(&self.state);
        if let Some(exit_reason) = &state.exit_reason {
            return exit_reason.clone();
        }
        let exit_reason = if let Ok(Some(status)) = state.owner.try_wait() {
            self.exit_reason_of(status)
        } else {
            // It may have exited meanwhile.
            let _ = lock(&self.control).shutdown(Shutdown::Both);
            if wait_briefly(&mut state.owner).is_none() {
                // The engine is killed with it, or as soon as the kernel can.
                let _ = state.owner.kill();
                wait_briefly(&mut state.owner);
                self.mark.kill_all();
            }
            ExitReason::because(reason)
        };
        state.exit_reason.insert(exit_reason).clone()
    }

    /// Waits for an engine that has closed a lane, which means that it is exiting, and returns how it did.
    pub(crate) fn wait_for_exit(&self) -> ExitReason {
        let mut state = lock(&self.state);
        if let Some(exit_reason) = &state.exit_reason {
            return exit_reason.clone();
        }
        if let Some(status) = wait_briefly(&mut state.owner) {
            return state.exit_reason.insert(self.exit_reason_of(status)).clone();
        }
        drop(state);
        self.stop("it closed a lane and did not exit")
    }

    fn exit_reason_of(&self, status: ExitStatus) -> ExitReason {
        if status.signal() == Some(SIGKILL) {
            // Maybe it was the owner that was killed.
            self.mark.kill_all();
        }
        describe_exit(status)
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        self.stop("it is not needed any more");
    }
}

/// Waits for a process that is about to exit, but at most a second: one that the kernel cannot kill now (a driver call
/// that does not return) must not block the server.
fn wait_briefly(owner: &mut Child) -> Option<ExitStatus> {
    for _ in 0..EXIT_POLLS {
        match owner.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => std::thread::sleep(EXIT_POLL_INTERVAL),
            Err(_) => return None,
        }
    }
    None
}

fn describe_exit(status: ExitStatus) -> ExitReason {
    let text = match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => format!("signal {signal}, {name}"),
            None => format!("signal {signal}"),
        },
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => UNKNOWN.to_owned(),
    };
    ExitReason { text, is_kill: matches!(status.signal(), Some(SIGKILL | SIGTERM)) }
}

const UNKNOWN: &str = "for an unknown reason";

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use super::{EngineMark, EngineProcess};

    /// A process whose standard input is the control stream.
    fn process(command: &mut Command) -> EngineProcess {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn().unwrap();
        EngineProcess::new(child, ours, EngineMark::new())
    }

    fn shell(script: &str) -> EngineProcess {
        process(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn the_exit_reason_is_reported() {
        let ended = shell("exit 3");
        assert_eq!(ended.wait_for_exit().text, "exit code 3");
        assert_eq!(ended.stop("anything").text, "exit code 3");
        for (signal, text, is_kill) in [(9, "signal 9, SIGKILL", true), (11, "signal 11, SIGSEGV", false)] {
            let killed = shell(&format!("kill -{signal} $$")).wait_for_exit();
            assert_eq!((killed.text.as_str(), killed.is_kill), (text, is_kill));
        }
    }

    #[test]
    fn only_a_process_that_exited_counts_as_exited() {
        let running = process(&mut Command::new("cat"));
        assert!(!running.has_exited());
        running.stop("it hung");
        assert!(running.has_exited());
        let killed = shell("kill -9 $$");
        while !killed.has_exited() {
            std::thread::yield_now();
        }
        assert_eq!(killed.exit_reason().unwrap().text, "signal 9, SIGKILL");
    }

    #[test]
    fn a_stopped_process_is_gone_and_keeps_the_first_reason() {
        // One ends with the control stream, as the owner of an engine does; the other one is killed.
        for script in ["cat; exit 7", "exec sleep 1000"] {
            let running = shell(script);
            let id = running.state.lock().unwrap().owner.id();
            assert_eq!(running.exit_reason(), None);
            assert_eq!(running.stop("it hung").text, "it hung");
            assert_eq!(running.stop("another").text, "it hung");
            let zombie = std::path::Path::new("/proc").join(id.to_string()).join("exe");
            assert!(!zombie.exists());
        }
    }
}
