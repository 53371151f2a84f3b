//! The merged view of the layers below the one being unpacked, minus what it removes.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags, Stat, fgetxattr, openat};
use rustix::io::Errno;

use super::meta::FileMeta;
use crate::unpack::confined_path::{
    ConfinedRoot, ancestors, file_type, is_whiteout, join_path, link_target, split_path, stat_entry,
};
use crate::unpack::options::StoreOptions;

/// The number of symlinks that Linux follows in one path.
const MAX_LINKS: usize = 40;
/// The longest symlink target.
const MAX_TARGET: usize = 4096;

/// A removal from the layers below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::unpack) enum Removal {
    Name(Vec<u8>),
    /// Removes everything in this directory.
    Contents(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::unpack) enum PathKind {
    Nothing,
    Directory,
    Link(Vec<u8>),
    Other,
}

pub(in crate::unpack) struct LowerLayers {
    /// The uppermost first.
    layers: Vec<ConfinedRoot>,
    options: StoreOptions,
    removed: HashSet<Vec<u8>>,
    emptied: HashSet<Vec<u8>>,
}

impl LowerLayers {
    /// Opens layers, the uppermost first.
    pub(in crate::unpack) fn open<'p>(
        layers: impl Iterator<Item = &'p Path>,
        options: StoreOptions,
    ) -> io::Result<Self> {
        let layers = layers.map(ConfinedRoot::open).collect::<io::Result<_>>()?;
        Ok(Self { layers, options, removed: HashSet::new(), emptied: HashSet::new() })
    }

    /// Applies removals in order: a removed symlink leads nowhere for those that follow.
    pub(in crate::unpack) fn remove(&mut self, removals: &[Removal]) -> io::Result<()> {
        for removal in removals {
            match removal {
                Removal::Name(path) => {
                    let real = real_path(path, false, |path| self.kind(path))?;
                    if let Some(real) = real.filter(|real| !real.is_empty())
                        && self.find(&real)?.is_some()
                    {
                        self.removed.insert(real);
                    }
                }
                Removal::Contents(path) if path.is_empty() => {
                    self.layers.clear();
                    self.removed.clear();
                    self.emptied.clear();
                }
                Removal::Contents(path) => {
                    let real = real_path(path, true, |path| self.kind(path))?;
                    if let Some(real) = real.filter(|real| !real.is_empty())
                        && self.kind(&real)? == PathKind::Directory
                    {
                        self.emptied.insert(real);
                    }
                }
            }
        }
        Ok(())
    }

    /// The names and directories to hide, in no particular order, without those inside of others.
    pub(in crate::unpack) fn hidden(&mut self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let names = self.removed.iter().filter(|path| !self.is_inside_removed(path)).cloned().collect();
        let is_removed = |path: &[u8]| self.is_inside_removed(path) || self.removed.contains(path);
        let directories = self.emptied.iter().filter(|path| !is_removed(path)).cloned().collect();
        (names, directories)
    }

    fn is_inside_removed(&self, path: &[u8]) -> bool {
        ancestors(path).any(|directory| self.removed.contains(directory) || self.emptied.contains(directory))
    }

    /// The kind of entry at a path without symlinks.
    pub(in crate::unpack) fn kind(&self, path: &[u8]) -> io::Result<PathKind> {
        let Some(found) = self.find(path)? else { return Ok(PathKind::Nothing) };
        Ok(match file_type(&found.stat) {
            FileType::Directory => PathKind::Directory,
            FileType::Symlink => PathKind::Link(link_target(&found.directory, split_path(path).1)?),
            _ => PathKind::Other,
        })
    }

    /// Metadata of a directory.
    pub(in crate::unpack) fn dir_meta(&self, path: &[u8]) -> io::Result<Option<FileMeta>> {
        let Some(found) = self.find(path)?.filter(|found| file_type(&found.stat) == FileType::Directory)
        else {
            return Ok(None);
        };
        let directory = open_dir(&found.directory, split_path(path).1)?;
        FileMeta::from_file(&found.stat, Some(&directory), self.options.ownership).map(Some)
    }

    /// Finds a path in the uppermost layer that has it.
    pub(in crate::unpack) fn find(&self, path: &[u8]) -> io::Result<Option<LowerEntry>> {
        if path.is_empty() || self.removed.contains(path) || self.is_inside_removed(path) {
            return Ok(None);
        }
        for layer in &self.layers {
            match self.find_in(layer, path)? {
                LayerLookup::Found(found) => return Ok(Some(found)),
                LayerLookup::Hidden => return Ok(None),
                LayerLookup::Nothing => {}
            }
        }
        Ok(None)
    }

    fn find_in(&self, layer: &ConfinedRoot, path: &[u8]) -> io::Result<LayerLookup> {
        let mut directory = layer.dir(b"")?;
        let mut missing = LayerLookup::Nothing;
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            let Some(stat) = stat_entry(&directory, part)? else { return Ok(missing) };
            if is_whiteout(&stat) {
                return Ok(LayerLookup::Hidden);
            }
            if parts.peek().is_none() {
                return Ok(LayerLookup::Found(LowerEntry { stat, directory }));
            }
            if file_type(&stat) != FileType::Directory {
                return Ok(LayerLookup::Hidden);
            }
            directory = open_dir(&directory, part)?;
            if self.is_opaque(&directory)? {
                missing = LayerLookup::Hidden;
            }
        }
        Ok(missing)
    }

    fn is_opaque(&self, directory: &OwnedFd) -> io::Result<bool> {
        let mut value = [0; 8];
        match fgetxattr(directory, self.options.whiteouts.opaque(), &mut value) {
            Ok(length) => Ok(value.get(..length) == Some(b"y")),
            Err(Errno::NODATA | Errno::NOTSUP | Errno::RANGE) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

pub(in crate::unpack) struct LowerEntry {
    pub(in crate::unpack) stat: Stat,
    pub(in crate::unpack) directory: OwnedFd,
}

enum LayerLookup {
    Found(LowerEntry),
    /// Hidden by this layer, even if layers below have it.
    Hidden,
    Nothing,
}

fn open_dir(directory: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::empty())?)
}

/// Resolves a path, whether or not it exists; none for a symlink loop. Symlinks stay inside the root, by the same rules
/// as in [`Tree`](crate::Tree).
pub(in crate::unpack) fn real_path<E>(
    path: &[u8],
    follow_last: bool,
    mut kind: impl FnMut(&[u8]) -> Result<PathKind, E>,
) -> Result<Option<Vec<u8>>, E> {
    let mut links = 0;
    let mut real = Vec::with_capacity(path.len());
    // The remaining components, the next one last.
    let mut parts: Vec<Vec<u8>> = path.rsplit(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
    while let Some(part) = parts.pop() {
        match part.as_slice() {
            b"" | b"." => continue,
            b".." => {
                real.truncate(split_path(&real).0.len());
                continue;
            }
            name => real = join_path(&real, name),
        }
        if parts.is_empty() && !follow_last {
            break;
        }
        if let PathKind::Link(target) = kind(&real)? {
            links += 1;
            if links > MAX_LINKS || target.len() > MAX_TARGET {
                return Ok(None);
            }
            if target.starts_with(b"/") {
                real.clear();
            } else {
                real.truncate(split_path(&real).0.len());
            }
            parts.extend(target.rsplit(|byte| *byte == b'/').map(<[u8]>::to_vec));
        }
    }
    Ok(Some(real))
}
