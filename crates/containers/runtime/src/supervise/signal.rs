//! Parses signals, including real-time ones, and delivers them to a container's first process.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use crate::error::RuntimeError;
use crate::namespace::sys;

pub(crate) const FORWARDED: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// The real-time signals that programs may use. The C library reserves two below these, so `SIGRTMIN+3` is 37, as in docker
/// and systemd.
const REAL_TIME: std::ops::RangeInclusive<i32> = 34..=64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalNumber(i32);

impl SignalNumber {
    pub fn get(self) -> i32 {
        self.0
    }
}

impl From<Signal> for SignalNumber {
    fn from(signal: Signal) -> Self {
        Self(signal as i32)
    }
}

/// Parses a name or number: TERM, SIGTERM, sigterm, 15, SIGRTMIN+3, 37.
pub fn parse_signal(text: &str) -> Result<SignalNumber, RuntimeError> {
    let unknown = || {
        RuntimeError::Request(format!(
            "unknown signal `{text}`: write a name such as TERM or RTMIN+3, or a number from 1 to 64"
        ))
    };
    if let Ok(number) = text.parse::<i32>() {
        return if (1..=64).contains(&number) { Ok(SignalNumber(number)) } else { Err(unknown()) };
    }
    let upper = text.to_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Some(number) = real_time(name) {
        return Ok(SignalNumber(number));
    }
    format!("SIG{name}").parse::<Signal>().map(SignalNumber::from).map_err(|_| unknown())
}

/// RTMIN, RTMIN+3, RTMAX, RTMAX-14.
fn real_time(name: &str) -> Option<i32> {
    let (first, last) = (*REAL_TIME.start(), *REAL_TIME.end());
    let offset = |text: &str, sign: char| -> Option<i32> {
        if text.is_empty() {
            return Some(0);
        }
        text.strip_prefix(sign)?.parse().ok().filter(|offset| (0..=last - first).contains(offset))
    };
    if let Some(rest) = name.strip_prefix("RTMIN") {
        return Some(first + offset(rest, '+')?);
    }
    Some(last - offset(name.strip_prefix("RTMAX")?, '-')?)
}

/// The stop signal of a container. An image may contain any text, so an invalid one falls back to SIGTERM.
pub(crate) fn stop_signal(text: &str) -> SignalNumber {
    let default = SignalNumber::from(Signal::SIGTERM);
    if text.is_empty() { default } else { parse_signal(text).unwrap_or(default) }
}

/// Forwards a signal to a process of a container.
///
/// The kernel drops a signal to PID 1 of a PID namespace that neither handles, ignores nor blocks it: a plain `sleep` would
/// not end, and `timeout 5 cudock run …` would wait forever. The sender expects the default action, so the process is
/// killed.
pub(crate) fn deliver(pid: i32, signal: Signal) {
    let ends = matches!(signal, Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT);
    let dropped = ends
        && fs::read_to_string(format!("/proc/{pid}/status"))
            .is_ok_and(|status| drops(&status, SignalNumber::from(signal)));
    let _ = sys::kill(pid, signal as i32);
    if dropped {
        eprintln!(
            "cudock: PID 1 of the container does not handle {signal} and was killed; --init runs it as a child that \
             receives signals"
        );
        let _ = sys::kill(pid, Signal::SIGKILL as i32);
    }
}

/// Whether the kernel would drop a signal to this process, by its `/proc/PID/status`.
fn drops(status: &str, signal: SignalNumber) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let namespaced = field("NSpid").is_some_and(|pids| {
        let mut pids = pids.split_whitespace();
        pids.next().is_some() && pids.next_back() == Some("1")
    });
    let bit = 1_u64 << (signal.get() - 1);
    let unset = |name: &str| {
        let mask = field(name).and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & bit == 0)
    };
    namespaced && unset("SigCgt") && unset("SigIgn") && unset("SigBlk")
}

/// The exit code of a process; 128 plus the signal's number if a signal ended it.
pub(crate) fn exit_status_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

pub(crate) fn kill_and_reap(pid: i32) {
    let _ = sys::kill(pid, Signal::SIGKILL as i32);
    let _ = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(pid), None);
}

/// Sends a signal, real-time ones included.
pub(crate) fn send(pid: i32, signal: SignalNumber) -> io::Result<()> {
    sys::kill(pid, signal.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_parsed_as_in_docker() {
        for (text, number) in [
            ("TERM", 15),
            ("SIGTERM", 15),
            ("sigterm", 15),
            ("quit", 3),
            ("15", 15),
            ("37", 37),
            ("64", 64),
            ("SIGRTMIN", 34),
            ("SIGRTMIN+3", 37),
            ("rtmin+3", 37),
            ("SIGRTMAX", 64),
            ("SIGRTMAX-14", 50),
        ] {
            assert_eq!(parse_signal(text).unwrap().get(), number, "{text}");
        }
        for text in ["", "0", "65", "-9", "SIGNOPE", "RTMIN+31", "RTMIN-1", "RTMAX+1", "RTMIN+x", "SIGRTMIN3"]
        {
            assert!(parse_signal(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_invalid_stop_signal_is_term() {
        for (text, number) in [("", 15), ("SIGRTMIN+3", 37), ("nonsense", 15), ("99999999999", 15), ("9", 9)]
        {
            assert_eq!(stop_signal(text).get(), number, "{text}");
        }
    }

    #[test]
    fn only_pid_one_without_a_handler_drops_a_signal() {
        let status = |pids: &str, caught: u64, ignored: u64, blocked: u64| {
            format!(
                "Name:\tx\nNSpid:\t{pids}\nSigBlk:\t{blocked:016x}\nSigIgn:\t{ignored:016x}\nSigCgt:\t{caught:016x}\n"
            )
        };
        let term = SignalNumber::from(Signal::SIGTERM);
        let bit = 1 << 14;
        assert!(drops(&status("4242\t1", 0, 0, 0), term));
        assert!(!drops(&status("4242\t7", 0, 0, 0), term), "not PID 1");
        assert!(!drops(&status("1", 0, 0, 0), term), "not in a namespace of its own");
        assert!(!drops(&status("4242\t1", bit, 0, 0), term), "handled");
        assert!(!drops(&status("4242\t1", 0, bit, 0), term), "ignored by choice");
        assert!(!drops(&status("4242\t1", 0, 0, bit), term), "waited for");
        assert!(!drops("", term));
    }
}
