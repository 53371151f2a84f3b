//! A slimmed file on disk: written beside, with holes, and renamed.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::compact::{self, CompactError};
use super::{Patch, Plan};
use cudock_map::map;

/// What the file system keeps together.
const PAGE: usize = 4096;
/// What is copied at a time.
const CHUNK: usize = 256 * PAGE;

/// Why a file could not be slimmed.
#[derive(Debug, thiserror::Error)]
pub enum SlimError {
    /// It could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A target, by its number, can load none of the GPU code: nothing that runs there would be left.
    #[error("target {target} can load none of the GPU code")]
    NoCode {
        /// The target.
        target: usize,
    },
    /// The output directory has something in it.
    #[error("{} is not empty", path.display())]
    OutputNotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The output would be a part of the input.
    #[error("{} lies inside the input directory", path.display())]
    OutputInside {
        /// The output.
        path: PathBuf,
    },
    /// It could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Its layout is not one that can be changed.
    #[error(transparent)]
    Compact(#[from] CompactError),
    /// What came out does not list what was to be kept.
    #[error("what is left does not read as it should: the file's own tables may lie in its GPU code")]
    Unproven,
}

/// Writes a slimmed file to `path`, which is replaced only when all is written and proven. Says how long the file is
/// and how much of it is no hole.
pub(super) fn write_slim(
    bytes: &[u8],
    plan: &Plan,
    compacted: bool,
    path: &Path,
    mode: fs::Permissions,
) -> Result<(u64, u64), SlimError> {
    let wrong = |source| SlimError::Write { path: path.to_owned(), source };
    let layout = if compacted { Some(compact::layout(bytes, &plan.patches)?) } else { None };
    let temp = temp_path(path);
    let result = (|| {
        let mut file = File::create(&temp).map_err(wrong)?;
        let written = match &layout {
            Some(layout) => layout.write(bytes, &plan.patches, &mut file),
            None => copy(bytes, &plan.patches, 0..bytes.len() as u64, 0, &mut file),
        };
        let written = written.map_err(wrong)?;
        let length = layout.as_ref().map_or(bytes.len() as u64, compact::Layout::length);
        file.set_len(length).map_err(wrong)?;
        file.set_permissions(mode).map_err(wrong)?;
        file.sync_all().map_err(wrong)?;
        let result = map(&temp).map_err(|error| wrong(error.source))?;
        if !plan.is_proven_by(&result) {
            return Err(SlimError::Unproven);
        }
        fs::rename(&temp, path).map_err(wrong)?;
        Ok((length, written))
    })();
    if result.is_err() {
        fs::remove_file(&temp).ok();
    }
    result
}

/// The slimmed content in memory, for files inside others.
pub fn in_memory(bytes: &[u8], plan: &Plan, compacted: bool) -> Result<Vec<u8>, SlimError> {
    let content = if compacted {
        let layout = compact::layout(bytes, &plan.patches)?;
        let mut out = io::Cursor::new(vec![0; usize::try_from(layout.length()).unwrap_or(0)]);
        // Writing to memory that is large enough does not fail.
        layout.write(bytes, &plan.patches, &mut out).ok();
        out.into_inner()
    } else {
        let mut content = bytes.to_vec();
        apply(&plan.patches, 0, &mut content);
        content
    };
    if plan.is_proven_by(&content) { Ok(content) } else { Err(SlimError::Unproven) }
}

/// A name beside the target, on the same file system.
pub(super) fn temp_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".slim-{}", std::process::id()));
    path.with_file_name(name)
}

/// Copies a file with its mode; the output is there whole or not at all.
pub(super) fn copy_file(input: &Path, output: &Path) -> Result<(), SlimError> {
    let temp = temp_path(output);
    let copied = fs::copy(input, &temp).and_then(|_| fs::rename(&temp, output));
    copied.map_err(|source| {
        fs::remove_file(&temp).ok();
        SlimError::Write { path: output.to_owned(), source }
    })
}

/// Copies a range with its patches to a place in the file, leaving out pages of zeros. Says how much was written.
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

/// Lays the patches that touch a chunk over it. Patches are in the order of the file.
pub(super) fn apply(patches: &[Patch], at: u64, chunk: &mut [u8]) {
    let end = at + chunk.len() as u64;
    let first = patches.partition_point(|patch| patch.end() <= at);
    for patch in patches.iter().skip(first).take_while(|patch| patch.offset < end) {
        let given_end = patch.offset + patch.bytes.len() as u64;
        if let Some(place) = part(chunk, at, patch.offset.max(at)..given_end.min(end)) {
            let from = usize::try_from(patch.offset.max(at) - patch.offset).unwrap_or(usize::MAX);
            if let Some(bytes) = patch.bytes.get(from..).and_then(|rest| rest.get(..place.len())) {
                place.copy_from_slice(bytes);
            }
        }
        if let Some(place) = part(chunk, at, given_end.max(at)..patch.end().min(end)) {
            place.fill(0);
        }
    }
}

/// A range of the file as a part of a chunk that begins at `at`; none if it is empty.
fn part(chunk: &mut [u8], at: u64, range: std::ops::Range<u64>) -> Option<&mut [u8]> {
    if range.start >= range.end {
        return None;
    }
    chunk.get_mut(usize::try_from(range.start - at).ok()?..usize::try_from(range.end - at).ok()?)
}
