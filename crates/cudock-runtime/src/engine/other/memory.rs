//! A file that is on no disk, for a child to read.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::{OnSystem, RuntimeError};

/// A file in memory that children inherit, and that goes when they and this are gone.
#[derive(Debug)]
pub(super) struct MemoryFile {
    file: File,
}

impl MemoryFile {
    /// A file with this text.
    pub(super) fn new(text: &str) -> Result<Self, RuntimeError> {
        let doing = "cannot make a file in memory";
        // Without the mark that would close it in a child.
        let mut file = File::from(memfd_create("cudock", MemfdFlags::empty()).when(doing)?);
        file.write_all(text.as_bytes()).when(doing)?;
        Ok(Self { file })
    }

    /// Where a child finds it.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}
