//! PID 1 of a container that was asked for an init process: it starts the program, forwards signals to it, and reaps
//! what it leaves behind.
//!
//! It runs in the process that libcontainer created, without executing a file: the image need not have one. So the memory
//! of that process stays, and what it holds of the host is taken out first: the environment and the arguments it was
//! started with are overwritten, and it is made undumpable, so that a container without `CAP_SYS_PTRACE` cannot read it.

use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid};

use crate::sys;

/// What `ps` shows for PID 1.
const TITLE: &str = "cudock-init";

/// Runs `program`, which becomes the user's program, in a child, and stays as PID 1. Ends this process with the exit code
/// of the child, 128 and the number of the signal where one ended it.
pub(crate) fn run(program: impl FnOnce()) -> ! {
    let all = SigSet::all();
    let _ = all.thread_block();
    let child = match sys::fork() {
        Ok(ForkResult::Parent { child }) => child,
        Ok(ForkResult::Child) => {
            become_foreground();
            let _ = SigSet::empty().thread_set_mask();
            program();
            std::process::exit(126)
        }
        Err(error) => {
            eprintln!("cudock: cannot start the program: {}", error.desc());
            std::process::exit(126)
        }
    };
    sys::forget_host(TITLE);
    let _ = nix::sys::prctl::set_dumpable(false);
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    let Ok(signals) = SignalFd::with_flags(&all, flags) else { std::process::exit(126) };
    loop {
        while let Ok(Some(signal)) = signals.read_signal() {
            let number = i32::try_from(signal.ssi_signo).unwrap_or_default();
            if number != Signal::SIGCHLD as i32 {
                let _ = sys::kill(child.as_raw(), number);
            }
        }
        if let Some(code) = reap(child) {
            std::process::exit(code);
        }
        let mut polled = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut polled, PollTimeout::NONE);
    }
}

/// Puts the child in a process group of its own, in the foreground where there is a terminal: Ctrl-C then reaches it once,
/// from the terminal, and not again from us.
fn become_foreground() {
    let _ = nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0));
    let _ = nix::unistd::tcsetpgrp(std::io::stdin().as_fd(), nix::unistd::getpid());
}

/// Reaps everything that has ended; the exit code of `child`, if it is among it.
fn reap(child: Pid) -> Option<i32> {
    let mut code = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) if pid == child => code = Some(status),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => code = Some(128 + signal as i32),
            Ok(WaitStatus::StillAlive) | Err(_) => return code,
            Ok(_) => {}
        }
    }
}
