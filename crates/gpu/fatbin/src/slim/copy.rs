//! Copies parts of a file with their patches applied.

use std::io::{self, Seek, SeekFrom, Write};

use super::Patch;

/// The page size of the file system.
const PAGE: usize = 4096;
/// The number of bytes copied at a time.
const CHUNK: usize = 256 * PAGE;

/// Copies a range with its patches to an offset in the file, skipping zero pages. Returns the number of bytes written.
pub(super) fn copy(
    bytes: &[u8],
    patches: &[Patch],
    range: std::ops::Range<u64>,
    to: u64,
    file: &mut (impl Write + Seek),
) -> io::Result<u64> {
    let mut written = 0;
    let mut at = range.start;
    let mut chunk = Vec::with_capacity(CHUNK);
    while at < range.end {
        let end = range.end.min(at + CHUNK as u64);
        chunk.clear();
        chunk.extend(slice(bytes, at, end));
        apply(patches, at, &mut chunk);
        for (index, page) in chunk.chunks(PAGE).enumerate() {
            if page.iter().any(|byte| *byte != 0) {
                file.seek(SeekFrom::Start(to + (at - range.start) + (index * PAGE) as u64))?;
                file.write_all(page)?;
                written += page.len() as u64;
            }
        }
        at = end;
    }
    Ok(written)
}

fn slice(bytes: &[u8], start: u64, end: u64) -> &[u8] {
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| bytes.get(start..end)).unwrap_or_default()
}

/// Applies the patches that overlap a chunk. Patches are in file order.
pub(super) fn apply(patches: &[Patch], at: u64, chunk: &mut [u8]) {
    let end = at + chunk.len() as u64;
    let first = patches.partition_point(|patch| patch.end() <= at);
    for patch in patches.iter().skip(first).take_while(|patch| patch.offset < end) {
        let given_end = patch.offset + patch.bytes.len() as u64;
        if let Some(offset) = part(chunk, at, patch.offset.max(at)..given_end.min(end)) {
            let from = usize::try_from(patch.offset.max(at) - patch.offset).unwrap_or(usize::MAX);
            if let Some(bytes) = patch.bytes.get(from..).and_then(|rest| rest.get(..offset.len())) {
                offset.copy_from_slice(bytes);
            }
        }
        if let Some(offset) = part(chunk, at, given_end.max(at)..patch.end().min(end)) {
            offset.fill(0);
        }
    }
}

/// The part of a chunk at `at` that overlaps a file range; none if it is empty.
fn part(chunk: &mut [u8], at: u64, range: std::ops::Range<u64>) -> Option<&mut [u8]> {
    if range.start >= range.end {
        return None;
    }
    chunk.get_mut(usize::try_from(range.start - at).ok()?..usize::try_from(range.end - at).ok()?)
}
