//! A sealed copy in memory.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;

use super::OWN;

/// Neither the bytes nor the length can change, nor can that be undone.
const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);

/// "May be executed": since Linux 6.3 a machine can be set to make memory files without it (`vm.memfd_noexec`).
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
        let what = format!(
            "{copied} of {length} bytes of our own executable were copied: was it changed meanwhile?"
        );
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
    }
    fcntl_add_seals(&copy, SEALS)?;
    // A handle that was never open for writing: the kernel does not execute what somebody has open for that.
    Ok(File::open(format!("/proc/self/fd/{}", copy.as_raw_fd()))?.into())
}

/// Whether this process runs from such a copy.
pub(super) fn is_own() -> io::Result<bool> {
    match fcntl_get_seals(File::open(OWN)?) {
        Ok(seals) => Ok(seals.contains(SEALS)),
        // A file that is not of memory has no seals.
        Err(Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
