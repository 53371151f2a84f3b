//! Layers: tar files, most of them compressed.

mod codec;
mod details;
mod input;
mod tar;

use std::collections::HashMap;
use std::io;
use std::ops::Range;

pub(crate) use codec::Codec;
pub(crate) use details::{Details, Holes, Time, check_parts, decimal, parts};
pub use input::Content;
pub(crate) use input::Input;
pub use tar::{EntryKind, Header};
pub(crate) use tar::{TarError, TarReader, clean};

use crate::tree::{Change, Node, NodeKind};

/// What an image may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Entries in a layer.
    pub entries: u64,
    /// Bytes that come out of a compressed layer, whatever went in.
    pub unpacked: u64,
    /// How many times as many bytes may come out as went in, beyond the first gigabyte.
    pub ratio: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 5_000_000, unpacked: 500 << 30, ratio: 400 }
    }
}

/// Below this no ratio is suspicious.
const SMALL: u64 = 1 << 30;

impl Limits {
    /// How many bytes may come out of so many.
    pub(crate) fn most(self, compressed: usize) -> u64 {
        (compressed as u64).saturating_mul(self.ratio).max(SMALL).min(self.unpacked)
    }
}

/// Reads a layer. `look` is called with each plain file, and may read it or not.
pub(crate) fn read<T>(
    bytes: &[u8],
    limits: Limits,
    look: &(impl Fn(&Header, &mut Content<'_, '_>) -> io::Result<Option<T>> + ?Sized),
) -> Result<Vec<Change<T>>, TarError> {
    let input = Input::of(bytes, limits)?;
    let mut reader = TarReader::new(input);
    let mut changes = Vec::new();
    let mut count = 0_u64;
    while let Some(header) = reader.next()? {
        count += 1;
        if count > limits.entries {
            return Err(TarError::Hostile(format!("more than {} entries", limits.entries)));
        }
        changes.extend(change(header, &mut reader, look)?);
    }
    Ok(changes)
}

/// The name that empties a directory of what lower layers put there.
const OPAQUE: &str = ".wh..wh..opq";
const WHITEOUT: &str = ".wh.";
/// What AUFS left in layers of its own book-keeping.
const AUFS: &str = ".wh..wh.";

/// What the last part of a path asks for, where it is no name of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark<'n> {
    /// The directory is emptied of what lower layers have in it.
    Opaque,
    /// Book-keeping of AUFS.
    Ignored,
    /// This name of lower layers is removed.
    Removes(&'n [u8]),
    /// What it would remove cannot be a name.
    Nameless,
}

/// What a name asks for; none for a plain name.
pub(crate) fn mark(name: &[u8]) -> Option<Mark<'_>> {
    if name == OPAQUE.as_bytes() {
        return Some(Mark::Opaque);
    }
    if name.starts_with(AUFS.as_bytes()) {
        return Some(Mark::Ignored);
    }
    match name.strip_prefix(WHITEOUT.as_bytes())? {
        b"" | b"." | b".." => Some(Mark::Nameless),
        removed => Some(Mark::Removes(removed)),
    }
}

/// The refusal of a [`Mark::Nameless`].
pub(crate) fn removes_nothing(path: &str) -> TarError {
    TarError::Hostile(format!("`{path}` removes nothing that has a name"))
}

fn change<T>(
    header: Header,
    reader: &mut TarReader<'_>,
    look: &(impl Fn(&Header, &mut Content<'_, '_>) -> io::Result<Option<T>> + ?Sized),
) -> Result<Option<Change<T>>, TarError> {
    let (parent, name) = header.path.rsplit_once('/').unwrap_or(("", &header.path));
    match mark(name.as_bytes()) {
        Some(Mark::Nameless) => return Err(removes_nothing(&header.path)),
        Some(Mark::Opaque) => return Ok(Some(Change::Empty(parent.to_owned()))),
        Some(Mark::Ignored) => return Ok(None),
        Some(Mark::Removes(_)) => {
            let removed = name.strip_prefix(WHITEOUT).unwrap_or_default();
            let path = if parent.is_empty() { removed.to_owned() } else { format!("{parent}/{removed}") };
            return Ok(Some(Change::Remove(path)));
        }
        None => {}
    }
    let kind = match header.kind {
        EntryKind::Directory => NodeKind::Directory,
        EntryKind::Symlink => NodeKind::Symlink(header.link),
        EntryKind::HardLink => {
            let target = clean(&header.link)?;
            return Ok(Some(Change::Link { path: header.path, target }));
        }
        EntryKind::Special => NodeKind::Special,
        EntryKind::File => {
            let mut content = reader.content();
            let kept = look(&header, &mut content)?;
            NodeKind::File { size: header.size, kept }
        }
    };
    // The root itself is there already.
    Ok((!header.path.is_empty()).then_some(Change::Put(header.path, Node { mode: header.mode, kind })))
}

/// Where the members of an archive lie in it.
pub(crate) fn members(bytes: &[u8]) -> Result<HashMap<String, Range<usize>>, TarError> {
    let mut reader = TarReader::new(Input::Whole { bytes, at: 0 });
    let mut members: HashMap<String, Range<usize>> = HashMap::new();
    while let Some(header) = reader.next()? {
        match header.kind {
            EntryKind::File => {
                let start = reader.position();
                let end = usize::try_from(header.size).ok().and_then(|size| start.checked_add(size));
                let end = end.filter(|end| *end <= bytes.len());
                let end = end.ok_or_else(|| {
                    TarError::Hostile(format!("`{}` is larger than the archive", header.path))
                })?;
                members.insert(header.path, start..end);
            }
            // Docker once wrote layers that are alike as links to the first.
            EntryKind::Symlink | EntryKind::HardLink => {
                let folder = header.path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let target = if header.kind == EntryKind::Symlink {
                    beside(folder, &header.link)
                } else {
                    header.link
                };
                if let Some(range) = members.get(&target).cloned() {
                    members.insert(header.path, range);
                }
            }
            EntryKind::Directory | EntryKind::Special => {}
        }
    }
    Ok(members)
}

/// Where a link in a folder leads.
fn beside(folder: &str, link: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// What comes out of an archive that is compressed as a whole, under the limits of a layer.
pub(crate) fn decoder(bytes: &[u8]) -> io::Result<impl io::Read + '_> {
    let limits = Limits::default();
    let most = limits.most(bytes.len());
    Ok(Bounded { decoder: codec::Codec::of(bytes).decoder(bytes)?, read: 0, most })
}

/// Ends with an error, not with a cut, where more comes out than may.
struct Bounded<R> {
    decoder: R,
    read: u64,
    most: u64,
}

impl<R: io::Read> io::Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(buffer)?;
        self.read += count as u64;
        if self.read > self.most { Err(input::bomb(self.most)) } else { Ok(count) }
    }
}

/// What the fuzzer calls: a layer from bytes, merged onto another.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let limits = Limits { entries: 10_000, unpacked: 64 << 20, ratio: 400 };
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
