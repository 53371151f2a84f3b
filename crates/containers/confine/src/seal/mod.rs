//! A handle to our own executable that a container cannot write to.
//!
//! A process that enters a container is briefly visible there, and `/proc/PID/exe` leads to its
//! executable on the host, past all mounts. Root in the container can hold that link open, write to
//! the file once no process runs it, and so take over the next start (CVE-2019-5736). So a process
//! that enters a container runs from something else:
//!
//! 1. [`by_overlay`]: the file through a detached read-only overlay mount of its directory. Nothing is copied and pages are
//!    shared with the file. Needs the right to mount.
//! 2. [`by_memory`]: a sealed copy in memory. Needs no rights, but costs the copy.
//!
//! ```no_run
//! use cudock_confine::seal;
//! use std::os::unix::process::CommandExt;
//! # fn main() -> std::io::Result<()> {
//! if !seal::is_sealed()? {
//!     let executable = seal::sealed_executable()?;
//!     return Err(seal::command(&executable).args(std::env::args_os().skip(1)).exec());
//! }
//! # Ok(())
//! # }
//! ```

mod memory;
mod overlay;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags, open};

pub use memory::by_memory;
pub use overlay::by_overlay;

const OWN: &str = "/proc/self/exe";

/// A handle to this process's executable that cannot be written through, closed on exec. A process that is sealed already
/// returns what it runs from.
pub fn sealed_executable() -> io::Result<OwnedFd> {
    if is_sealed().is_ok_and(|sealed| sealed) {
        return Ok(open(OWN, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?);
    }
    by_overlay().or_else(|_| by_memory())
}

/// Whether this process runs from such a handle.
pub fn is_sealed() -> io::Result<bool> {
    Ok(memory::is_own()? || overlay::is_own()?)
}

/// A command that runs the executable behind a handle, under the name of this process. The handle must stay open until
/// the command has started. Needs `/proc`.
///
/// [`std::env::current_exe`] does not work in the new process, and the kernel lists it under the descriptor's number until
/// it calls [`rustix::thread::set_name`].
pub fn command(executable: &OwnedFd) -> Command {
    let mut command = Command::new(format!("/proc/self/fd/{}", executable.as_raw_fd()));
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command
}
