//! Files in memory without reading them: libraries of half a gigabyte are looked at in a few pages.
//!
//! There is no safe way to map a file, so it has a crate of its own. Memory shared between two processes is a mapped
//! file, too.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

pub use memmap2::Mmap;

mod heap;
mod shared;

pub use heap::return_large_blocks;
pub use shared::{Mapping, SharedMemory};

/// A file that cannot be mapped.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct MapError {
    /// The file.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// Maps a file for reading.
#[allow(unsafe_code, reason = "there is no safe way to map a file")]
pub fn map(path: &Path) -> Result<Mmap, MapError> {
    let wrong = |source| MapError { path: path.to_owned(), source };
    let file = File::open(path).map_err(wrong)?;
    if !file.metadata().map_err(wrong)?.is_file() {
        return Err(wrong(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file")));
    }
    // SAFETY: the mapping is private and read only. Another process that writes to the file meanwhile can change the
    // bytes under us, and one that cuts it short makes reading beyond its new end end this process: the same holds for
    // every program that maps libraries, the dynamic loader among them. No reference outlives the mapping, and nothing
    // here relies on bytes staying the same between two reads.
    unsafe { Mmap::map(&file) }.map_err(wrong)
}
