//! The engine process, as seen by its parent.

use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Mutex;
use std::time::Duration;

use cudock_base::lock;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::channel::{CancelRequest, send_message};

/// Interval and number of checks for a process that must exit, before it is abandoned.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(2);
const EXIT_POLLS: usize = 500;

/// A process that is killed when dropped.
#[derive(Debug)]
pub(crate) struct EngineProcess {
    pub(crate) id: u32,
    state: Mutex<ProcessState>,
    /// Its end of the control stream sees this one close, too.
    control: Mutex<UnixStream>,
}

#[derive(Debug)]
struct ProcessState {
    child: Child,
    exit_reason: Option<String>,
}

impl EngineProcess {
    pub(crate) fn new(child: Child, control: UnixStream) -> Self {
        Self {
            id: child.id(),
            state: Mutex::new(ProcessState { child, exit_reason: None }),
            control: Mutex::new(control),
        }
    }

    /// How it exited, if it is known to have.
    pub(crate) fn exit_reason(&self) -> Option<String> {
        lock(&self.state).exit_reason.clone()
    }

    /// Asks it to cancel a batch. A process that is exiting need not receive it.
    pub(crate) fn cancel(&self, request: &CancelRequest) {
        let _ = send_message(&mut lock(&self.control), request);
    }

    /// Whether it has exited. An error other than "no such child" does not mean that it has.
    pub(crate) fn has_exited(&self) -> bool {
        let mut state = lock(&self.state);
        if state.exit_reason.is_some() {
            return true;
        }
        match state.child.try_wait() {
            Ok(Some(status)) => state.exit_reason = Some(describe_exit(status)),
            // Reaped elsewhere, for example because SIGCHLD is ignored.
            Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => {
                state.exit_reason = Some("for an unknown reason".to_owned());
            }
            Ok(None) | Err(_) => {}
        }
        state.exit_reason.is_some()
    }

    /// Kills it, unless it has exited, and returns how it exited: by itself, or for `reason`.
    pub(crate) fn stop(&self, reason: &str) -> String {
        let mut state = lock(&self.state);
        if let Some(exit_reason) = &state.exit_reason {
            return exit_reason.clone();
        }
        let exit_reason = if let Ok(Some(status)) = state.child.try_wait() {
            describe_exit(status)
        } else {
            // It may have exited meanwhile. The processes that it started are in its group.
            let group = i32::try_from(self.id).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = state.child.kill();
            wait_briefly(&mut state.child);
            reason.to_owned()
        };
        state.exit_reason.insert(exit_reason).clone()
    }

    /// Waits for a process that has closed a lane, which means that it is exiting, and returns how it did.
    pub(crate) fn wait_for_exit(&self) -> String {
        let mut state = lock(&self.state);
        if let Some(exit_reason) = &state.exit_reason {
            return exit_reason.clone();
        }
        if let Some(status) = wait_briefly(&mut state.child) {
            return state.exit_reason.insert(describe_exit(status)).clone();
        }
        drop(state);
        self.stop("it closed a lane and did not exit")
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        self.stop("it is not needed any more");
    }
}

/// Waits for a process that is about to exit, but at most a second: one that the kernel cannot kill now (a driver call
/// that does not return) must not block the server.
fn wait_briefly(child: &mut Child) -> Option<ExitStatus> {
    for _ in 0..EXIT_POLLS {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => std::thread::sleep(EXIT_POLL_INTERVAL),
            Err(_) => return None,
        }
    }
    None
}

fn describe_exit(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => format!("signal {signal}, {name}"),
            None => format!("signal {signal}"),
        },
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use super::EngineProcess;

    fn process(command: &mut Command) -> EngineProcess {
        EngineProcess::new(command.stdin(Stdio::piped()).spawn().unwrap(), UnixStream::pair().unwrap().0)
    }

    #[test]
    fn the_exit_reason_is_reported() {
        let wait_for_exit = process(Command::new("sh").args(["-c", "exit 3"]));
        assert_eq!(wait_for_exit.wait_for_exit(), "exit code 3");
        assert_eq!(wait_for_exit.stop("anything"), "exit code 3");
        let killed = process(Command::new("sh").args(["-c", "kill -9 $$"]));
        assert_eq!(killed.wait_for_exit(), "signal 9, SIGKILL");
    }

    #[test]
    fn only_a_process_that_exited_counts_as_exited() {
        let running = process(&mut Command::new("cat"));
        assert!(!running.has_exited());
        running.stop("it hung");
        assert!(running.has_exited());
        let killed = process(Command::new("sh").args(["-c", "kill -9 $$"]));
        while !killed.has_exited() {
            std::thread::yield_now();
        }
        assert_eq!(killed.exit_reason().as_deref(), Some("signal 9, SIGKILL"));
    }

    #[test]
    fn a_stopped_process_is_gone_and_keeps_the_first_reason() {
        let running = process(&mut Command::new("cat"));
        assert_eq!(running.exit_reason(), None);
        assert_eq!(running.stop("it hung"), "it hung");
        assert_eq!(running.stop("another"), "it hung");
        let zombie = std::path::Path::new("/proc").join(running.id.to_string()).join("exe");
        assert!(!zombie.exists());
    }
}
