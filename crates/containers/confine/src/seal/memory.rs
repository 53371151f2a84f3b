//! The executable as a sealed copy in memory.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;

use super::OWN;

/// Neither contents nor length can change, and no seal can be removed.
const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);

/// `MFD_EXEC`: since Linux 6.3, `vm.memfd_noexec` can make memory files not executable by default.
const EXECUTABLE: MemfdFlags = MemfdFlags::from_bits_retain(0x10);

/// A handle to a copy of this process's executable, in memory and sealed.
pub fn by_memory() -> io::Result<OwnedFd> {
    let mut own = File::open(OWN)?;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create("cudock", flags | EXECUTABLE) {
        Err(Errno::INVAL) => memfd_create("cudock", flags)?,
        other => other?,
    };
    let mut copy = File::from(made);
    let copied = io::copy(&mut own, &mut copy)?;
    let length = own.metadata()?.len();
    if copied != length {
        let message = format!(
            "{copied} of {length} bytes of our own executable were copied: was it changed meanwhile?"
        );
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
    }
    fcntl_add_seals(&copy, SEALS)?;
    // Reopened, since the kernel does not execute a file that is open for writing.
    Ok(File::open(format!("/proc/self/fd/{}", copy.as_raw_fd()))?.into())
}

/// Whether this process runs from such a copy.
pub(super) fn is_own() -> io::Result<bool> {
    match fcntl_get_seals(File::open(OWN)?) {
        Ok(seals) => Ok(seals.contains(SEALS)),
        // Only memory files have seals.
        Err(Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
