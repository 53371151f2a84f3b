//! Memory-mapped files and shared memory.
//!
//! Libraries of half a gigabyte can be inspected by reading a few pages. There is no safe way to map a file, so this is a
//! separate crate. Memory shared between two processes is a mapped file, too.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

pub use memmap2::Mmap;

mod heap;
mod shared;

pub use heap::return_large_blocks;
pub use shared::{Mapping, SharedMemory};

#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct MapError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// Maps a file for reading.
#[allow(unsafe_code, reason = "files cannot be mapped safely")]
pub fn map(path: &Path) -> Result<Mmap, MapError> {
    let io_error = |source| MapError { path: path.to_owned(), source };
    let file = File::open(path).map_err(io_error)?;
    if !file.metadata().map_err(io_error)?.is_file() {
        return Err(io_error(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
    }
    // SAFETY: the mapping is private and read-only. Another process that writes to the file can change the bytes, and one
    // that truncates it causes SIGBUS on access: the same holds for every program that maps libraries, including the dynamic
    // loader. No reference outlives the mapping, and no code relies on bytes being the same in two reads.
    unsafe { Mmap::map(&file) }.map_err(io_error)
}
