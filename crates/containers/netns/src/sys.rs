//! System calls that need `unsafe`, wrapped in safe functions.
#![allow(unsafe_code, reason = "each block states why it is sound")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::FdFlags;
use rustix::ioctl::{Setter, ioctl};
use rustix::process::Signal;
use rustix::thread::UnshareFlags;

/// Moves the calling thread, and only it, into a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: unshare(2) is only dangerous to memory safety when it unshares the table of descriptors (CLONE_FILES). A
    // network namespace changes which sockets can be created, not which descriptors are open.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(io::Error::from)
}

/// `struct ifreq` for `SIOCSIFFLAGS`: name, flags, and the rest of the union.
#[repr(C)]
struct InterfaceFlags {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

const SIOCSIFFLAGS: rustix::ioctl::Opcode = 0x8914;
const IFF_UP: i16 = 1;

/// Brings up the loopback device of the calling thread's network namespace.
pub(crate) fn bring_up_loopback() -> io::Result<()> {
    let request = InterfaceFlags { name: *b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0", flags: IFF_UP, rest: [0; 22] };
    // Any socket works, and every kernel supports this family.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: SIOCSIFFLAGS reads one `struct ifreq`, which is 40 bytes: the name, then the flags. `InterfaceFlags` has
    // that size and layout, and lives until the call returns.
    unsafe { ioctl(&socket, Setter::<SIOCSIFFLAGS, _>::new(request)) }.map_err(io::Error::from)
}

/// Makes the process started by `command` receive `signal` when the calling thread ends, and inherit the descriptors in
/// `keep` under the same numbers. Other processes started at the same time do not inherit them. It gets signals even if the
/// caller has blocked them.
///
/// The caller must keep `keep` open until the process has been started.
pub(crate) fn tie_to_parent(command: &mut Command, signal: Signal, keep: Vec<RawFd>) {
    cudock_base::tie_to_parent(command, signal);
    let prepare = move || {
        for &number in &keep {
            // SAFETY: the descriptor is only borrowed for this call. If it were not open, which the caller guarantees, the
            // kernel returns EBADF and the process is not started.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        nix::sys::signal::SigSet::empty().thread_set_mask()?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls: it does not allocate, lock, or access memory that
    // another thread may be changing.
    unsafe { command.pre_exec(prepare) };
}

/// Takes ownership of an inherited descriptor.
///
/// Fails if it is not open or is a standard stream. Call this at the start of a process that got the number from its
/// parent, and only once for each number.
pub(crate) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::Error::from(rustix::io::Errno::BADF));
    }
    // SAFETY: the descriptor is only borrowed to check whether it is open; otherwise the call returns EBADF.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) })?;
    // SAFETY: it is open, and by the contract above it was inherited and nothing in this process owns it.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(owned.as_fd(), FdFlags::CLOEXEC)?;
    Ok(owned)
}
