//! Containers rewritten where they lie.

use crate::container::{CONTAINER_HEADER, Module};

/// Bytes to write at a place of the file: some that are given, then zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Where.
    pub offset: u64,
    /// What.
    pub bytes: Vec<u8>,
    /// How many zeros follow.
    pub zeros: u64,
}

impl Patch {
    /// Where the patch ends.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64 + self.zeros
    }
}

/// Moves the kept entries of a container to its front. From the first entry that goes on, everything is written anew;
/// what stands before stays untouched.
pub(super) fn module(module: &Module, kept: &[bool], file: &[u8]) -> Vec<Patch> {
    let start = module.offset;
    let whole = module.size;
    let entries = || module.entries.iter().zip(kept);
    let size: u64 = entries().filter(|(_, kept)| **kept).map(|(entry, _)| entry.size()).sum();
    // A container without entries is not one: an entry without code for no card stands in.
    let stand_in = (size == 0).then(stand_in);
    let content = size.max(stand_in.as_ref().map_or(0, |bytes| bytes.len() as u64));
    let header = Patch { offset: start + 8, bytes: content.to_le_bytes().to_vec(), zeros: 0 };

    let untouched = entries()
        .take_while(|(_, kept)| **kept)
        .last()
        .map_or(CONTAINER_HEADER, |(entry, _)| entry.offset + entry.size() - start);
    let mut moved = stand_in.unwrap_or_default();
    for (entry, _) in entries().skip_while(|(_, kept)| **kept).filter(|(_, kept)| **kept) {
        let range = usize::try_from(entry.offset).ok().zip(usize::try_from(entry.size()).ok());
        let bytes = range.and_then(|(at, size)| file.get(at..at.checked_add(size)?));
        moved.extend(bytes.unwrap_or_default());
    }
    let zeros = (whole - untouched).saturating_sub(moved.len() as u64);
    vec![header, Patch { offset: start + untouched, bytes: moved, zeros }]
}

/// The header of a cubin that is empty and for an architecture that never was.
fn stand_in() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let fields: [(usize, &[u8]); 4] =
        [(0, &[2, 0, 1, 1]), (4, &64_u32.to_le_bytes()), (24, &[7, 0, 1, 0]), (40, &0x11_u64.to_le_bytes())];
    for (at, field) in fields {
        if let Some(place) = bytes.get_mut(at..at + field.len()) {
            place.copy_from_slice(field);
        }
    }
    bytes
}
