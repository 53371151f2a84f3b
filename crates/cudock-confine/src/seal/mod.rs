//! Our own executable, out of a container's reach.
//!
//! A process that enters a container is for a moment visible there, and `/proc/<its number>/exe` leads to its executable
//! on the host, past all mounts. Whoever is root in the container can keep that door open and, when nobody runs the file
//! any more, write to it: the next start is theirs (CVE-2019-5736). So what enters a container must run from something
//! that is not the file itself and cannot be written:
//!
//! 1. [`by_overlay`]: the file through a read-only overlay mount of its folder that is attached nowhere. Nothing is
//!    copied, pages are shared with the file, and it takes a few system calls. Needs the right to mount.
//! 2. [`by_memory`]: a copy in memory that is sealed against all changes. Works for everyone; costs the copy.
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

/// The door to our own executable.
const OWN: &str = "/proc/self/exe";

/// A handle to this process's executable that nobody can write through, closed on exec. A process that is sealed hands
/// on what it runs from itself.
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
/// the command has been started; the started program does not have it, as it is closed on exec. Needs `/proc`.
///
/// What is started this way does not find its own file by name ([`std::env::current_exe`]), and the kernel lists it under
/// the descriptor's number until it gives itself a name ([`rustix::thread::set_name`]).
pub fn command(executable: &OwnedFd) -> Command {
    let mut command = Command::new(format!("/proc/self/fd/{}", executable.as_raw_fd()));
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command
}
