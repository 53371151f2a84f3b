//! The few calls that Rust cannot check, each behind a function that is safe to call.
#![allow(unsafe_code, reason = "each block says why it is sound")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::FdFlags;
use rustix::ioctl::{Setter, ioctl};
use rustix::process::{Pid, Signal};
use rustix::thread::UnshareFlags;

/// Gives the calling thread, and only it, a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: the one danger of unshare(2) to memory is a table of descriptors that is no longer shared
    // (CLONE_FILES). A network namespace changes which sockets can be made, not which descriptors are open.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(io::Error::from)
}

/// `struct ifreq` as `SIOCSIFFLAGS` reads it: a name, the flags, and the rest of the union.
#[repr(C)]
struct InterfaceFlags {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

const SIOCSIFFLAGS: rustix::ioctl::Opcode = 0x8914;
const IFF_UP: i16 = 1;

/// Brings up the loopback device of the calling thread's network namespace.
pub(crate) fn raise_loopback() -> io::Result<()> {
    let mut name = [0; 16];
    for (to, from) in name.iter_mut().zip(b"lo") {
        *to = *from;
    }
    let request = InterfaceFlags { name, flags: IFF_UP, rest: [0; 22] };
    // Any socket will do, and one of this family exists in every kernel.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: SIOCSIFFLAGS reads one `struct ifreq`, which is 40 bytes with the name first and the flags behind it;
    // `InterfaceFlags` has that size and layout, and lives until the call returns.
    unsafe { ioctl(&socket, Setter::<SIOCSIFFLAGS, _>::new(request)) }.map_err(io::Error::from)
}

/// Makes the process that `command` will start end with `signal` when the calling thread ends, and inherit `keep`
/// under the same numbers. Nothing else that runs at the same time inherits them.
///
/// The caller keeps `keep` open until the process has been started.
pub(crate) fn tie(command: &mut Command, signal: Signal, keep: Vec<RawFd>) {
    let parent = rustix::process::getpid();
    let prepare = move || {
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        // The parent may have ended before the line above; then no signal will ever come.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::from(rustix::io::Errno::SRCH));
        }
        for &number in &keep {
            // SAFETY: the number is only lent for this call. Should it not be open, which the caller promised not to
            // let happen, the kernel answers EBADF and the process is not started.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes three kinds of system calls and nothing else: it does not
    // allocate, take a lock, or touch memory that another thread may have been changing.
    unsafe { command.pre_exec(prepare) };
}

/// Takes over a descriptor that this process was started with.
///
/// Answers an error if nothing is open under that number, or if it is one of the standard streams. To be called at
/// the start of a process that was told the number by its parent, and once for each number: from then on the
/// descriptor is owned.
pub(crate) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::Error::from(rustix::io::Errno::BADF));
    }
    // SAFETY: the number is only lent for the call that finds out whether it is open; a closed one is answered with
    // EBADF and goes no further.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) })?;
    // SAFETY: it is open, and by the contract above it came with the process and nobody in it owns it yet.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(owned.as_fd(), FdFlags::CLOEXEC)?;
    Ok(owned)
}

/// The number of the calling process's parent, as it was when this was called.
pub(crate) fn parent() -> Option<Pid> {
    rustix::process::getppid()
}
