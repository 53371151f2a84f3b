//! Rewrites containers in place.

use crate::container::{CONTAINER_HEADER, Module};

/// A change to a file: some bytes, followed by zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub offset: u64,
    pub bytes: Vec<u8>,
    /// The number of zeros after them.
    pub zeros: u64,
}

impl Patch {
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64 + self.zeros
    }
}

/// Moves the kept entries of a container to its front. Everything from the first removed entry on is rewritten.
pub(super) fn module(module: &Module, kept: &[bool], file: &[u8]) -> Vec<Patch> {
    let start = module.offset;
    let whole = module.size;
    let entries = || module.entries.iter().zip(kept);
    let size: u64 = entries().filter(|(_, kept)| **kept).map(|(entry, _)| entry.size()).sum();
    // A container needs an entry: a placeholder without code, for no GPU.
    let placeholder = (size == 0).then(placeholder);
    let content = size.max(placeholder.as_ref().map_or(0, |bytes| bytes.len() as u64));
    let header = Patch { offset: start + 8, bytes: content.to_le_bytes().to_vec(), zeros: 0 };

    let unchanged = entries()
        .take_while(|(_, kept)| **kept)
        .last()
        .map_or(CONTAINER_HEADER, |(entry, _)| entry.offset + entry.size() - start);
    let mut moved = placeholder.unwrap_or_default();
    for (entry, _) in entries().skip_while(|(_, kept)| **kept).filter(|(_, kept)| **kept) {
        let range = usize::try_from(entry.offset).ok().zip(usize::try_from(entry.size()).ok());
        let bytes = range.and_then(|(at, size)| file.get(at..at.checked_add(size)?));
        moved.extend(bytes.unwrap_or_default());
    }
    let zeros = (whole - unchanged).saturating_sub(moved.len() as u64);
    vec![header, Patch { offset: start + unchanged, bytes: moved, zeros }]
}

/// The header of an empty cubin for an architecture that does not exist.
fn placeholder() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let fields: [(usize, &[u8]); 4] =
        [(0, &[2, 0, 1, 1]), (4, &64_u32.to_le_bytes()), (24, &[7, 0, 1, 0]), (40, &0x11_u64.to_le_bytes())];
    for (at, field) in fields {
        if let Some(target) = bytes.get_mut(at..at + field.len()) {
            target.copy_from_slice(field);
        }
    }
    bytes
}
