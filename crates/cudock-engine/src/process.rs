//! The engine's process, as its parent sees it.

use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

use crate::cancel::Cancel;
use crate::channel::send_message;

/// How often, and how many times, a process that must end is looked after before it is left to itself.
const LOOK: Duration = Duration::from_millis(2);
const LOOKS: usize = 500;

/// A process that is stopped when nobody needs it any more.
#[derive(Debug)]
pub(crate) struct Process {
    number: u32,
    state: Mutex<State>,
    /// Its end of the control stream sees this one close, too.
    control: Mutex<UnixStream>,
}

#[derive(Debug)]
struct State {
    child: Child,
    end: Option<String>,
}

impl Process {
    pub(crate) fn new(child: Child, control: UnixStream) -> Self {
        Self {
            number: child.id(),
            state: Mutex::new(State { child, end: None }),
            control: Mutex::new(control),
        }
    }

    /// Its number.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// How it ended, if it is known to have.
    pub(crate) fn end(&self) -> Option<String> {
        self.state().end.clone()
    }

    /// Asks it to stop a batch. One that is ending need not hear it.
    pub(crate) fn cancel(&self, cancel: &Cancel) {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = send_message(&mut control, cancel);
    }

    /// Whether it has exited, as the kernel says. An error other than "no such child" says nothing about it.
    pub(crate) fn has_exited(&self) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return true;
        }
        match state.child.try_wait() {
            Ok(Some(status)) => state.end = Some(in_words(status)),
            // Reaped by somebody else, as where SIGCHLD is ignored.
            Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => {
                state.end = Some("for an unknown reason".to_owned());
            }
            Ok(None) | Err(_) => {}
        }
        state.end.is_some()
    }

    /// Ends it, if it has not ended yet, and says how it ended: in its own way, or for the reason given here.
    pub(crate) fn stop(&self, reason: &str) -> String {
        let mut state = self.state();
        if let Some(end) = &state.end {
            return end.clone();
        }
        let end = if let Ok(Some(status)) = state.child.try_wait() {
            in_words(status)
        } else {
            // It may be gone by now; then there is nothing to do.
            let _ = state.child.kill();
            wait_a_while(&mut state.child);
            reason.to_owned()
        };
        state.end = Some(end.clone());
        end
    }

    /// Waits for a process that closed a lane, which means that it is ending, and says how it did.
    pub(crate) fn ended(&self) -> String {
        let mut state = self.state();
        if let Some(end) = &state.end {
            return end.clone();
        }
        if let Some(status) = wait_a_while(&mut state.child) {
            let end = in_words(status);
            state.end = Some(end.clone());
            return end;
        }
        drop(state);
        self.stop("it closed a lane and went on")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop("it is no longer needed");
    }
}

/// Waits for a process that is about to end. One that the kernel cannot end now (a driver call that does not return)
/// is waited for no longer than a second: it must not hold up the server.
fn wait_a_while(child: &mut Child) -> Option<ExitStatus> {
    for _ in 0..LOOKS {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => std::thread::sleep(LOOK),
            Err(_) => return None,
        }
    }
    None
}

fn in_words(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_name(signal) {
            Some(name) => format!("signal {signal}, {name}"),
            None => format!("signal {signal}"),
        },
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use super::Process;

    fn process(command: &mut Command) -> Process {
        Process::new(command.stdin(Stdio::piped()).spawn().unwrap(), UnixStream::pair().unwrap().0)
    }

    #[test]
    fn a_process_that_ended_by_itself_says_how() {
        let ended = process(Command::new("sh").args(["-c", "exit 3"]));
        assert_eq!(ended.ended(), "exit code 3");
        assert_eq!(ended.stop("anything"), "exit code 3");
        let killed = process(Command::new("sh").args(["-c", "kill -9 $$"]));
        assert_eq!(killed.ended(), "signal 9, SIGKILL");
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
        assert_eq!(killed.end().as_deref(), Some("signal 9, SIGKILL"));
    }

    #[test]
    fn a_process_that_is_stopped_is_gone_and_keeps_the_first_reason() {
        let running = process(&mut Command::new("cat"));
        assert_eq!(running.end(), None);
        assert_eq!(running.stop("it hung"), "it hung");
        assert_eq!(running.stop("another"), "it hung");
        let zombie = std::path::Path::new("/proc").join(running.number().to_string()).join("exe");
        assert!(!zombie.exists());
    }
}
