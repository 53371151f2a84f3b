//! Files in memory that child processes inherit.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::{OnError, RuntimeError};

/// A file in memory that stays open in child processes.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    file: File,
}

impl MemoryFile {
    pub(crate) fn new(contents: &[u8]) -> Result<Self, RuntimeError> {
        let action = "cannot create a file in memory";
        // Not closed on exec: it is for the program that is started next.
        let mut file = File::from(memfd_create("cudock", MemfdFlags::empty()).when(action)?);
        file.write_all(contents).when(action)?;
        Ok(Self { file })
    }

    /// The descriptor, which has the same number in the child.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.descriptor()))
    }
}
