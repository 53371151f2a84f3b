//! The system calls that no library offers safely. All `unsafe` of this crate is here.

#![allow(unsafe_code, reason = "each block says why it holds")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::signal::{SigHandler, Signal, signal};

use crate::container::config::Propagation;

/// Gives signals back the effect they have in a fresh program. Rust's runtime ignores SIGPIPE, and what is ignored stays
/// so in the programs one becomes.
pub(crate) fn restore_signals() {
    for number in [Signal::SIGPIPE, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGTERM] {
        // SAFETY: the default effect is not a function of ours, so nothing can be called in a bad moment.
        let _ = unsafe { signal(number, SigHandler::SigDfl) };
    }
}

/// Closes every descriptor but the three standard ones.
pub(crate) fn close_all_but_standard() {
    // SAFETY: called in a process that is about to become another program, or to run one function and end: no object
    // of ours that owns one of these descriptors is used after it.
    let _ = unsafe { nix::libc::syscall(nix::libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// Runs `task` in a process of its own, which the caller does not wait for; in this process if none
/// can be created.
pub(crate) fn in_background(task: impl FnOnce()) {
    // SAFETY: the watcher has one thread, so its memory is whole in the child.
    match unsafe { nix::unistd::fork() } {
        Ok(nix::unistd::ForkResult::Parent { .. }) => {}
        Ok(nix::unistd::ForkResult::Child) => {
            let _ = nix::unistd::setsid();
            // A process that reads our outputs to their end must not have to wait for us.
            close_all();
            task();
            // SAFETY: ends the process without running what the parent has registered for its own end.
            unsafe { nix::libc::_exit(0) };
        }
        Err(_) => task(),
    }
}

/// Closes every descriptor of a forked child that uses none but those its task opens.
fn close_all() {
    // SAFETY: see above: no object that owns a descriptor is used again.
    let _ = unsafe { nix::libc::syscall(nix::libc::SYS_close_range, 0_u32, u32::MAX, 0_u32) };
}

/// Runs `task` in a process of its own that is not a child of this one, so that this one need not
/// wait for it. Without effect if none can be created.
pub(crate) fn orphaned(task: impl FnOnce()) {
    // SAFETY: the caller is a command that has not started threads yet, so its memory is whole in the child.
    match unsafe { nix::unistd::fork() } {
        Ok(nix::unistd::ForkResult::Parent { child }) => {
            let _ = nix::sys::wait::waitpid(child, None);
        }
        Ok(nix::unistd::ForkResult::Child) => {
            // Locks are held as long as any copy of their descriptor is open. Closed here, none outlives the caller's
            // wait; closed in the grandchild alone, the next process to lock could come before that.
            close_all();
            in_background(task);
            // SAFETY: ends the process without running what the parent has registered for its own end.
            unsafe { nix::libc::_exit(0) };
        }
        Err(_) => {}
    }
}

/// Runs a task in a new process that is a child of this one's parent, and exits with what the task returns. Returns the
/// number of the process, as seen from this one's pid namespace. Must be called with one thread.
pub(crate) fn spawn_sibling(task: impl FnOnce() -> i32) -> io::Result<i32> {
    let flags = nix::libc::c_long::from(nix::libc::CLONE_PARENT | nix::libc::SIGCHLD);
    // SAFETY: without CLONE_VM and with a null stack this is fork(2) with another parent; this process has one thread, so
    // its memory is whole in the child. All pointers are null in every order of arguments that architectures have.
    let pid = unsafe { nix::libc::syscall(nix::libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(task)).unwrap_or(101);
            // SAFETY: ends the process without running what the parent has registered for its own end.
            unsafe { nix::libc::_exit(code) };
        }
        pid => i32::try_from(pid).map_err(io::Error::other),
    }
}

/// Moves a descriptor to number 3, closed on exec, and closes all others but the three standard ones.
pub(crate) fn keep_as_third(descriptor: BorrowedFd<'_>) -> io::Result<BorrowedFd<'static>> {
    if descriptor.as_raw_fd() != 3 {
        // SAFETY: duplicates one descriptor over another; what owned number 3 is not used after it.
        let moved = unsafe { nix::libc::dup3(descriptor.as_raw_fd(), 3, nix::libc::O_CLOEXEC) };
        if moved < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: called in a process that uses no object that owns a descriptor from here on.
    let closed = unsafe { nix::libc::syscall(nix::libc::SYS_close_range, 4_u32, u32::MAX, 0_u32) };
    if closed != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened above, and stays open until the process becomes another program or closes everything.
    Ok(unsafe { BorrowedFd::borrow_raw(3) })
}

/// Takes a descriptor that was just received over.
pub(crate) fn own(descriptor: RawFd) -> OwnedFd {
    // SAFETY: the kernel made it for this process in the message it came with, and nothing else knows its number.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Makes these the variables of this process, and no others.
pub(crate) fn replace_environment(variables: &[(String, String)]) {
    for (name, _) in std::env::vars_os() {
        // SAFETY: this is called in a process with one thread, so the environment is not read meanwhile.
        unsafe { std::env::remove_var(name) };
    }
    for (name, value) in variables.iter().filter(|(name, value)| is_plain(name) && !value.contains('\0')) {
        // SAFETY: as above; names and values that the function would refuse were left out.
        unsafe { std::env::set_var(name, value) };
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// Gives a mount that is attached nowhere, and all below it, attributes and a propagation.
pub(crate) fn set_mount_attributes(
    mount: BorrowedFd<'_>,
    attributes: u64,
    propagation: Propagation,
) -> io::Result<()> {
    let attributes = nix::libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: match propagation {
            Propagation::Private => nix::libc::MS_PRIVATE,
            Propagation::Slave => nix::libc::MS_SLAVE,
        },
        userns_fd: 0,
    };
    let flags = nix::libc::AT_EMPTY_PATH | nix::libc::AT_RECURSIVE;
    // SAFETY: the path is an empty text that ends with a zero, and the attributes live as long as the call; their size
    // is the one given.
    let done = unsafe {
        nix::libc::syscall(
            nix::libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<nix::libc::mount_attr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives this process an empty session keyring. Otherwise its programs could read the keys of the caller's.
pub(crate) fn new_session_keyring() -> io::Result<()> {
    // From linux/keyctl.h.
    const JOIN_SESSION_KEYRING: nix::libc::c_long = 1;
    let name = std::ptr::null::<nix::libc::c_char>();
    // SAFETY: without a name the call touches no memory of this process.
    let joined = unsafe { nix::libc::syscall(nix::libc::SYS_keyctl, JOIN_SESSION_KEYRING, name) };
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        _ if joined >= 0 => Ok(()),
        // Without keys in the kernel there are none to read. A filter that denies this call holds for the container, too.
        Some(nix::libc::ENOSYS | nix::libc::EPERM) => Ok(()),
        _ => Err(error),
    }
}

/// Sends a signal by its number, which may be one of the real-time ones that `nix` does not name.
pub(crate) fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: takes two numbers and touches no memory of this process.
    if unsafe { nix::libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a copy of this process, which must have one thread.
pub(crate) fn fork() -> nix::Result<nix::unistd::ForkResult> {
    // SAFETY: libcontainer's init process has one thread, so its memory is whole in the child.
    unsafe { nix::unistd::fork() }
}

/// Overwrites the environment and the arguments that this process was started with, which others see in `/proc`, and
/// leaves `title` in place of the arguments.
pub(crate) fn forget_host(title: &str) {
    // The fields after the name in parentheses, from the third on.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<usize> = stat
        .rsplit_once(") ")
        .map(|(_, rest)| rest.split(' ').map(|field| field.trim().parse().unwrap_or(0)).collect())
        .unwrap_or_default();
    let field = |number: usize| fields.get(number - 3).copied().unwrap_or(0);
    let regions = [(field(48), field(49), title), (field(50), field(51), "")];
    for (start, end, text) in regions {
        if start == 0 || end <= start {
            continue;
        }
        let kept = text.len().min(end - start - 1);
        // SAFETY: the kernel put the arguments and the environment between these addresses, on this process's own stack,
        // which is writable. This process has one thread and reads neither of them again.
        unsafe {
            std::ptr::write_bytes(start as *mut u8, 0, end - start);
            std::ptr::copy_nonoverlapping(text.as_ptr(), start as *mut u8, kept);
        }
    }
    let name = std::ffi::CString::new(title).unwrap_or_default();
    let _ = nix::sys::prctl::set_name(&name);
}
