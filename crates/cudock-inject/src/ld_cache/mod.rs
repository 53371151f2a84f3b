//! The loader's cache, `/etc/ld.so.cache`, read and written.
//!
//! A driver's libraries that are mounted into a container are not in its cache, and running its `ldconfig` means
//! running a program of the image before the container is closed off. So the cache is read, the driver's libraries are
//! put in front of others of their names, and it is written again, in the order that the loader's search relies on.
//!
//! The format is that of glibc since 2.2 (`glibc-ld.so.cache1.1`), behind the older one or alone; it is written alone.

mod order;
mod read;
mod write;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::edits::{ElfClass, Library};

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

/// No cache is larger: a whole distribution's is some hundred kilobytes.
const MAX_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cache {
    /// Libraries, in the order of the file.
    pub entries: Vec<CacheEntry>,
}

/// A library the loader knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// libcuda.so.1
    pub name: String,
    pub path: String,
    /// For which kind of program.
    pub flags: u32,
    /// The oldest kernel; unused since glibc 2.36.
    pub os_version: u32,
    /// For which processors.
    pub hwcap: Hwcap,
}

/// For which processors a library is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hwcap {
    /// A bit set, as before glibc 2.33; 0 is all processors.
    Bits(u64),
    /// The directory below `glibc-hwcaps`, such as `x86-64-v3`.
    Named(String),
}

/// The bytes of a file of a sensible size.
pub(crate) fn read_file(path: &Path) -> Option<Vec<u8>> {
    let file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()? as u64;
    (read <= MAX_BYTES).then_some(bytes)
}

/// What the cache says of a library for programs of this kind.
pub fn flags(arch: &str, class: ElfClass) -> u32 {
    match (arch, class) {
        ("x86_64", ElfClass::Bits64) => 0x0303,
        ("aarch64", ElfClass::Bits64) => 0x0a03,
        ("aarch64", ElfClass::Bits32) => 0x0903,
        // i386 has no mark of its own; nor have processors this was never tried on.
        _ => 0x0003,
    }
}

impl Cache {
    /// The cache with a driver's libraries in front of all others of their names.
    ///
    /// Entries of those names for certain processors are left out, since the loader would prefer them.
    #[must_use]
    pub fn with_driver(self, libraries: &[Library], arch: &str) -> Self {
        let mut entries: Vec<CacheEntry> = Vec::new();
        for library in libraries {
            let entry = CacheEntry {
                name: library.soname.clone(),
                path: library.path.display().to_string(),
                flags: flags(arch, library.class),
                os_version: 0,
                hwcap: Hwcap::Bits(0),
            };
            let same = |known: &CacheEntry| known.name == entry.name && known.flags == entry.flags;
            if !entries.iter().any(same) {
                entries.push(entry);
            }
        }
        let ours = entries.len();
        for entry in self.entries {
            let same = |known: &CacheEntry| {
                known.name == entry.name
                    && known.flags == entry.flags
                    && (known.path == entry.path || entry.hwcap != Hwcap::Bits(0))
            };
            if !entries.iter().take(ours).any(same) {
                entries.push(entry);
            }
        }
        Self { entries }
    }
}
