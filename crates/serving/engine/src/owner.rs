//! The owner of an engine process: it ends with the engine, and with everything that the engine has started.
//!
//! A model may start processes, which would survive a crash of the engine, or a server that was killed. So the server
//! does not start the engine itself but this process, which does nothing else: it adopts orphans, so that no descendant
//! of the engine can leave it, and kills them all when the engine ends or the server closes the control stream. The
//! stream is open here until then: who sees its end knows that nothing is left.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cudock_base::process::tree::{adopt_orphans, kill_descendants};
use cudock_base::tie_to_parent;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, WaitStatus, pidfd_open, pidfd_send_signal,
    setrlimit, wait,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::channel::{LoadReply, send_message};

/// Runs an engine process, whose program and arguments are `command`, and ends by the signal that ended it or returns its exit
/// code. Standard input must be the socket that [`crate::IsolatedEngine::start`] passes.
pub fn own_engine(command: impl IntoIterator<Item = OsString>) -> u8 {
    match command_of(command).and_then(|mut command| own(&mut command)) {
        Ok(status) => {
            end_by_signal(status);
            status.exit_status().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
        }
        Err(error) => {
            report(&error);
            1
        }
    }
}

fn command_of(words: impl IntoIterator<Item = OsString>) -> io::Result<Command> {
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().ok_or(io::ErrorKind::InvalidInput)?);
    command.args(words);
    Ok(command)
}

/// Starts the engine, waits until it or the server ends, and kills what is left.
fn own(command: &mut Command) -> io::Result<WaitStatus> {
    // The server still needs its engine when a signal reaches all of their processes. Children could not be waited for if
    // SIGCHLD were ignored, which is inherited.
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGCHLD, SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    adopt_orphans()?;
    // A model that kills its process group must not kill this process.
    command.process_group(0);
    tie_to_parent(command, Signal::KILL);
    let child = command.spawn()?;
    let engine = Pid::from_child(&child);
    let result = end_with_server(engine).and_then(|()| wait_for(engine));
    kill_descendants(&[], &mut |_, _| {});
    result
}

/// Kills the engine once the server closes the control stream.
fn end_with_server(engine: Pid) -> io::Result<()> {
    let handle = pidfd_open(engine, PidfdFlags::empty())?;
    let end = move || {
        let stdin = io::stdin();
        // Without events, only the end of the stream is reported.
        let _ = retry_on_intr(|| poll(&mut [PollFd::new(&stdin, PollFlags::empty())], None));
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    };
    std::thread::Builder::new().name("server".to_owned()).spawn(end).map(drop)
}

/// Waits for the engine, and reaps orphans meanwhile.
fn wait_for(engine: Pid) -> io::Result<WaitStatus> {
    loop {
        if let Some((ended, status)) = retry_on_intr(|| wait(WaitOptions::empty()))?
            && ended == engine
        {
            return Ok(status);
        }
    }
}

/// Ends this process by the same signal, so that its parent sees how the engine ended.
fn end_by_signal(status: WaitStatus) {
    if let Some(signal) = status.terminating_signal() {
        // One file with the engine's memory is enough.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

/// Reports to the server that the engine could not be started.
fn report(error: &io::Error) {
    let reason = format!("cannot start the engine process: {error}");
    let control = io::stdin().as_fd().try_clone_to_owned();
    let sent = control.and_then(|control| {
        send_message(&mut UnixStream::from(control), &LoadReply::Load { reason: reason.clone() })
    });
    if sent.is_err() {
        eprintln!("error: {reason}");
    }
}
