//! System calls that need `unsafe`, wrapped in safe functions.
#![allow(unsafe_code, reason = "each block states why it is sound")]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::Signal;

/// Makes the process started by `command` receive `signal` when the calling thread ends, however that happens.
pub fn tie_to_parent(command: &mut Command, signal: Signal) {
    let parent = rustix::process::getpid();
    let prepare = move || {
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        // The parent may have ended before the previous line; then the signal would never come.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::from(rustix::io::Errno::SRCH));
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes two kinds of system calls: it does not allocate, lock, or
    // access memory that another thread may be changing.
    unsafe { command.pre_exec(prepare) };
}
