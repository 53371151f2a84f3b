//! A driver in the loader's cache.
//!
//! A driver's libraries that are mounted into a container are not in its cache, and running its
//! `ldconfig` would run a program of the image before the container is confined. So the cache is
//! read, the driver's libraries are put in front of others of their names, and it is written again.

use cudock_host::ld_cache::{Cache, CacheEntry, Hwcap};

use crate::edits::Library;
use crate::elf::ElfClass;

/// The cache flags of a library of this class.
pub fn flags(arch: &str, class: ElfClass) -> u32 {
    match (arch, class) {
        ("x86_64", ElfClass::Bits64) => 0x0303,
        ("aarch64", ElfClass::Bits64) => 0x0a03,
        ("aarch64", ElfClass::Bits32) => 0x0903,
        // i386 has no flag of its own; other processors were never tested.
        _ => 0x0003,
    }
}

/// The cache with a driver's libraries in front of all others of their names.
///
/// Entries of those names for certain processors are left out, since the loader would prefer them.
pub fn with_driver(cache: Cache, libraries: &[Library], arch: &str) -> Cache {
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
    for entry in cache.entries {
        let same = |known: &CacheEntry| {
            known.name == entry.name
                && known.flags == entry.flags
                && (known.path == entry.path || entry.hwcap != Hwcap::Bits(0))
        };
        if !entries.iter().take(ours).any(same) {
            entries.push(entry);
        }
    }
    Cache { entries }
}
