//! The loader's cache, `/etc/ld.so.cache`, read and written in the order that the loader's search relies on.
//!
//! The format is that of glibc since 2.2 (`glibc-ld.so.cache1.1`), behind the older one or alone; it is written alone.

mod order;
mod read;
mod write;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use order::compare_names;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const HEADER: usize = 48;
const ENTRY: usize = 24;
const EXTENSION: u32 = 0xEAA4_2174;
/// The section of an extension that names directories for processors of a kind.
const HWCAPS_SECTION: u32 = 1;
/// This bit of an entry says that the low half of its number is the place of such a name.
const NAMED_HWCAP: u64 = 1 << 62;

/// Maximum size of a cache; that of a whole distribution is some hundred kilobytes.
const MAX_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cache {
    /// The entries in the order of the file.
    pub entries: Vec<CacheEntry>,
}

/// A library the loader knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// `libcuda.so.1`
    pub name: String,
    pub path: String,
    /// The kind of programs that can use the library.
    pub flags: u32,
    /// The oldest kernel; unused since glibc 2.36.
    pub os_version: u32,
    pub hwcap: Hwcap,
}

/// The processors that a library is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hwcap {
    /// A bit set, as before glibc 2.33; 0 is all processors.
    Bits(u64),
    /// The directory below `glibc-hwcaps`, such as `x86-64-v3`.
    Named(String),
}

impl Cache {
    /// Reads the cache in a file of a sensible size.
    pub fn read(path: &Path) -> Option<Self> {
        let mut bytes = Vec::new();
        let read = File::open(path).ok()?.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()? as u64;
        Self::parse(&bytes).filter(|_| read <= MAX_BYTES)
    }
}
