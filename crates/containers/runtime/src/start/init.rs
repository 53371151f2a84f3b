//! The init process of `--init`: PID 1, which starts the program, forwards signals to it and reaps orphans.
//!
//! It runs in the process that libcontainer created, without executing a file, so that the image needs none. Since the memory
//! of that process remains, its environment and arguments are overwritten, and it is made undumpable, so that a container
//! without `CAP_SYS_PTRACE` cannot read it.

use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid};

use crate::namespace::sys;

/// The name that `ps` shows for PID 1.
const TITLE: &str = "cudock-init";

/// Runs `program`, which executes the user's program, in a child, and stays as PID 1. Exits with the exit code of the child,
/// or 128 plus the number of the signal that ended it.
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

/// Puts the child in a process group of its own, in the foreground of the terminal if there is one, so that Ctrl-C reaches
/// it once.
fn become_foreground() {
    let _ = nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0));
    let _ = nix::unistd::tcsetpgrp(std::io::stdin().as_fd(), nix::unistd::getpid());
}

/// Reaps all children that have exited. Returns the exit code of `child` if it is among them.
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
