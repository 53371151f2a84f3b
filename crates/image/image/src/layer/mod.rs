//! Layers: tar files, usually compressed.

mod codec;
mod details;
mod header;
mod input;
mod tar;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::Range;

pub(crate) use codec::decompressor;
pub(crate) use details::{EntryDetails, SparseMap, Time, check_extents, decimal, extents};
pub(crate) use header::TarError;
pub use input::Content;
pub(crate) use input::LayerInput;
pub use tar::{EntryHeader, TarOnly};
pub(crate) use tar::{TarReader, clean};

use cudock_base::Codec;
use cudock_base::text::path::{join, parent};

use crate::kind::FileKind;
use crate::tree::{LayerChange, Special, TreeFile, TreeNode};

/// Limits that protect against hostile layers.
#[derive(Debug, Clone, Copy)]
pub struct LayerLimits {
    /// Entries per layer.
    pub entries: u64,
    /// Total size of a decompressed layer.
    pub unpacked: u64,
    /// Compression ratio, for layers that decompress to more than a gibibyte.
    pub ratio: u64,
}

impl Default for LayerLimits {
    fn default() -> Self {
        Self { entries: 5_000_000, unpacked: 500 << 30, ratio: 400 }
    }
}

/// Any ratio is acceptable below this size.
const SMALL: u64 = 1 << 30;

impl LayerLimits {
    /// The decompressed size allowed for a compressed size.
    pub(crate) fn max_output(self, compressed: usize) -> u64 {
        (compressed as u64).saturating_mul(self.ratio).max(SMALL).min(self.unpacked)
    }
}

/// Reads a layer. `inspect` is called for each regular file and may read it.
pub(crate) fn read<T>(
    bytes: &[u8],
    limits: LayerLimits,
    inspect: &(impl Fn(&EntryHeader, &mut Content<'_, '_>) -> io::Result<Option<T>> + ?Sized),
) -> Result<Vec<LayerChange<T>>, TarError> {
    let input = LayerInput::new(bytes, limits)?;
    let mut reader = TarReader::new(input);
    let mut changes = Vec::new();
    while let Some(header) = reader.next_below(limits.entries)? {
        changes.extend(change_of(header, |header| inspect(header, &mut reader.content()))?);
    }
    Ok(changes)
}

/// Reads an uncompressed tar stream that is not a layer, such as the data of a package: `visit` is called for each entry and
/// may read its content. The error describes the problem.
pub fn read_tar<'a>(
    stream: Box<dyn io::Read + 'a>,
    limits: LayerLimits,
    visit: &mut dyn FnMut(&EntryHeader, &mut Content<'_, '_>) -> io::Result<()>,
) -> Result<(), String> {
    let mut reader = TarReader::new(LayerInput::stream(stream, limits.unpacked));
    loop {
        let header = reader.next_below(limits.entries).map_err(|error| error.to_string())?;
        let Some(header) = header else { return Ok(()) };
        visit(&header, &mut reader.content()).map_err(|error| format!("`{}`: {error}", header.path))?;
    }
}

/// The marker that hides what lower layers have in a directory.
const OPAQUE: &str = ".wh..wh..opq";
const WHITEOUT: &str = ".wh.";
/// The prefix of AUFS metadata, which some layers still contain.
const AUFS: &str = ".wh..wh.";

/// The meaning of a whiteout marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whiteout<'n> {
    /// Hides what lower layers have in the directory.
    Opaque,
    /// AUFS metadata.
    Ignored,
    /// Removes this name of lower layers.
    Removes(&'n [u8]),
    /// The name to remove is not valid.
    Invalid,
}

/// Parses the last component of a path; none for a regular name.
pub(crate) fn parse_whiteout(name: &[u8]) -> Option<Whiteout<'_>> {
    if name == OPAQUE.as_bytes() {
        return Some(Whiteout::Opaque);
    }
    if name.starts_with(AUFS.as_bytes()) {
        return Some(Whiteout::Ignored);
    }
    match name.strip_prefix(WHITEOUT.as_bytes())? {
        b"" | b"." | b".." => Some(Whiteout::Invalid),
        removed => Some(Whiteout::Removes(removed)),
    }
}

pub(crate) fn invalid_whiteout(path: &str) -> TarError {
    TarError::Hostile(format!("`{path}` is an invalid whiteout"))
}

/// The change that an entry makes; `inspect` is called for a regular file.
pub(crate) fn change_of<T>(
    header: EntryHeader,
    inspect: impl FnOnce(&EntryHeader) -> io::Result<Option<T>>,
) -> Result<Option<LayerChange<T>>, TarError> {
    let (parent, name) = header.path.rsplit_once('/').unwrap_or(("", &header.path));
    match parse_whiteout(name.as_bytes()) {
        Some(Whiteout::Invalid) => return Err(invalid_whiteout(&header.path)),
        Some(Whiteout::Opaque) => return Ok(Some(LayerChange::Empty(parent.to_owned()))),
        Some(Whiteout::Ignored) => return Ok(None),
        Some(Whiteout::Removes(_)) => {
            let removed = name.strip_prefix(WHITEOUT).unwrap_or_default();
            let path = if parent.is_empty() { removed.to_owned() } else { format!("{parent}/{removed}") };
            return Ok(Some(LayerChange::Remove(path)));
        }
        None => {}
    }
    let kind = match header.kind {
        FileKind::Directory => FileKind::Directory,
        FileKind::Symlink(target) => FileKind::Symlink(target),
        FileKind::Other(TarOnly::HardLink(target)) => {
            let target = clean(&target)?;
            return Ok(Some(LayerChange::Link { path: header.path, target }));
        }
        FileKind::Other(TarOnly::Special) => FileKind::Other(Special),
        FileKind::File(size) => FileKind::File(TreeFile { size, kept: inspect(&header)? }),
    };
    // The root has no entry.
    Ok((!header.path.is_empty())
        .then_some(LayerChange::Put(header.path, TreeNode { mode: header.mode, kind })))
}

/// The paths that hard links in an uncompressed layer lead to.
pub(crate) fn hard_link_targets(bytes: &[u8]) -> Result<BTreeSet<String>, TarError> {
    let mut reader = TarReader::new(LayerInput::Slice { bytes, at: 0 });
    let mut targets = BTreeSet::new();
    while let Some(header) = reader.next_below(LayerLimits::default().entries)? {
        if let FileKind::Other(TarOnly::HardLink(target)) = &header.kind {
            targets.insert(clean(target)?);
        }
    }
    Ok(targets)
}

/// The byte ranges of the files in an uncompressed archive.
pub(crate) fn members(bytes: &[u8]) -> Result<HashMap<String, Range<usize>>, TarError> {
    let mut reader = TarReader::new(LayerInput::Slice { bytes, at: 0 });
    let mut members: HashMap<String, Range<usize>> = HashMap::new();
    while let Some(header) = reader.next()? {
        let target = match header.kind {
            FileKind::File(size) => {
                let start = reader.position();
                let end = usize::try_from(size).ok().and_then(|size| start.checked_add(size));
                let Some(end) = end.filter(|end| *end <= bytes.len()) else {
                    return Err(TarError::Hostile(format!("`{}` is larger than the archive", header.path)));
                };
                members.insert(header.path, start..end);
                continue;
            }
            // Old versions of docker wrote identical layers as links to the first one.
            FileKind::Symlink(target) => join(parent(&header.path), target.trim_start_matches('/')),
            FileKind::Other(TarOnly::HardLink(target)) => target,
            FileKind::Directory | FileKind::Other(TarOnly::Special) => continue,
        };
        if let Some(range) = members.get(&target).cloned() {
            members.insert(header.path, range);
        }
    }
    Ok(members)
}

/// A reader for an archive that is compressed as a whole, with the limits of a layer.
pub(crate) fn decoder(bytes: &[u8]) -> io::Result<impl io::Read + '_> {
    let limits = LayerLimits::default();
    let limit = limits.max_output(bytes.len());
    Ok(BoundedReader { decoder: decompressor(Codec::detect(bytes), bytes)?, read: 0, limit })
}

/// Fails, instead of ending, when the limit is exceeded.
struct BoundedReader<R> {
    decoder: R,
    read: u64,
    limit: u64,
}

impl<R: io::Read> io::Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(buffer)?;
        self.read += count as u64;
        if self.read > self.limit { Err(input::bomb_error(self.limit)) } else { Ok(count) }
    }
}

/// Fuzz entry point: parses layers and merges them.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let limits = LayerLimits { entries: 10_000, unpacked: 64 << 20, ratio: 400 };
    let half = bytes.len() / 2;
    let (lower, upper) = bytes.split_at(half);
    let mut tree = crate::Tree::default();
    for layer in [bytes, lower, upper] {
        let changes = read(layer, limits, &|_, content| {
            let first = content.start()?.first().copied();
            Ok(if first == Some(0x7f) { Some(content.all()?.len()) } else { None })
        });
        if let Ok(changes) = changes {
            let _ = tree.apply(changes);
        }
    }
    for (path, _) in tree.iter() {
        let _ = tree.resolve(path);
        let _ = tree.names(path).count();
    }
}
