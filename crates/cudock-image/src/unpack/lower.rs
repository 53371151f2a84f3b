//! What lies below a layer: the layers that are unpacked already, seen as one, less what the new layer removes.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags, Stat, fgetxattr, openat};
use rustix::io::Errno;

use super::beneath::{Beneath, above, entry, is_whiteout, join, kind, leads_to, split};
use super::meta::Meta;
use super::options::StoreOptions;

/// Links that lead to links, as many as Linux follows.
const MAX_LINKS: usize = 40;
/// Where a link may lead, in bytes.
const MAX_TARGET: usize = 4096;

/// What a layer takes away from those below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Removal {
    /// What has this name.
    Name(Vec<u8>),
    /// All that is in this folder.
    Contents(Vec<u8>),
}

/// What a path is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Nothing,
    Folder,
    Link(Vec<u8>),
    Other,
}

/// The merged view of lower layers.
pub(super) struct Lower {
    /// The uppermost first.
    layers: Vec<Beneath>,
    options: StoreOptions,
    removed: HashSet<Vec<u8>>,
    emptied: HashSet<Vec<u8>>,
}

impl Lower {
    /// The layers in these folders, the uppermost first.
    pub(super) fn open<'p>(
        layers: impl Iterator<Item = &'p Path>,
        options: StoreOptions,
    ) -> io::Result<Self> {
        let layers = layers.map(Beneath::open).collect::<io::Result<_>>()?;
        Ok(Self { layers, options, removed: HashSet::new(), emptied: HashSet::new() })
    }

    /// Takes away what the new layer removes, one after the other: a removed link leads nowhere for those after it.
    pub(super) fn remove(&mut self, removals: &[Removal]) -> io::Result<()> {
        for removal in removals {
            match removal {
                Removal::Name(path) => {
                    let real = real(path, false, |path| self.kind(path))?;
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
                    let real = real(path, true, |path| self.kind(path))?;
                    if let Some(real) = real.filter(|real| !real.is_empty())
                        && self.kind(&real)? == Kind::Folder
                    {
                        self.emptied.insert(real);
                    }
                }
            }
        }
        Ok(())
    }

    /// What has to be hidden for it, in no order: nothing that lies below something hidden as well.
    pub(super) fn hidden(&mut self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let covered = |path: &[u8]| {
            above(path).any(|folder| self.removed.contains(folder) || self.emptied.contains(folder))
        };
        let names = self.removed.iter().filter(|path| !covered(path)).cloned().collect();
        let is_removed = |path: &[u8]| covered(path) || self.removed.contains(path);
        let folders = self.emptied.iter().filter(|path| !is_removed(path)).cloned().collect();
        (names, folders)
    }

    /// What is at a path that has no links on its way.
    pub(super) fn kind(&self, path: &[u8]) -> io::Result<Kind> {
        let Some(found) = self.find(path)? else { return Ok(Kind::Nothing) };
        Ok(match kind(&found.stat) {
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link(leads_to(&found.folder, split(path).1)?),
            _ => Kind::Other,
        })
    }

    /// Owner, mode, attributes and time of a folder.
    pub(super) fn folder_meta(&self, path: &[u8]) -> io::Result<Option<Meta>> {
        let Some(found) = self.find(path)?.filter(|found| kind(&found.stat) == FileType::Directory) else {
            return Ok(None);
        };
        let folder = open_folder(&found.folder, split(path).1)?;
        Meta::of_file(&found.stat, Some(&folder), self.options.ownership).map(Some)
    }

    /// What is at a path, and the folder of the layer that has it.
    pub(super) fn find(&self, path: &[u8]) -> io::Result<Option<Found>> {
        let gone = self.removed.contains(path)
            || above(path).any(|folder| self.removed.contains(folder) || self.emptied.contains(folder));
        if gone || path.is_empty() {
            return Ok(None);
        }
        for layer in &self.layers {
            match self.find_in(layer, path)? {
                Seen::Here(found) => return Ok(Some(found)),
                Seen::Hidden => return Ok(None),
                Seen::Nothing => {}
            }
        }
        Ok(None)
    }

    fn find_in(&self, layer: &Beneath, path: &[u8]) -> io::Result<Seen> {
        let mut folder = layer.folder(b"")?;
        let mut missing = Seen::Nothing;
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            let Some(stat) = entry(&folder, part)? else { return Ok(missing) };
            if is_whiteout(&stat) {
                return Ok(Seen::Hidden);
            }
            if parts.peek().is_none() {
                return Ok(Seen::Here(Found { stat, folder }));
            }
            if kind(&stat) != FileType::Directory {
                return Ok(Seen::Hidden);
            }
            folder = open_folder(&folder, part)?;
            if self.is_opaque(&folder)? {
                missing = Seen::Hidden;
            }
        }
        Ok(missing)
    }

    fn is_opaque(&self, folder: &OwnedFd) -> io::Result<bool> {
        let mut value = [0; 8];
        match fgetxattr(folder, self.options.whiteouts.opaque(), &mut value) {
            Ok(length) => Ok(value.get(..length) == Some(b"y")),
            Err(Errno::NODATA | Errno::NOTSUP | Errno::RANGE) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Something in a lower layer.
pub(super) struct Found {
    pub(super) stat: Stat,
    /// The folder it lies in.
    pub(super) folder: OwnedFd,
}

enum Seen {
    Here(Found),
    /// This layer hides what those below it have there.
    Hidden,
    Nothing,
}

fn open_folder(folder: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?)
}

/// Where a path leads, whether or not something is there; none for links in a circle. Links stay inside, as in
/// [`Tree`](crate::Tree), which goes by the same rules.
pub(super) fn real<E>(
    path: &[u8],
    follow_last: bool,
    mut kind: impl FnMut(&[u8]) -> Result<Kind, E>,
) -> Result<Option<Vec<u8>>, E> {
    let mut links = 0;
    let mut real = Vec::with_capacity(path.len());
    // What is still to walk, the next part last.
    let mut parts: Vec<Vec<u8>> = path.rsplit(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
    while let Some(part) = parts.pop() {
        match part.as_slice() {
            b"" | b"." => continue,
            b".." => {
                real.truncate(split(&real).0.len());
                continue;
            }
            name => real = join(&real, name),
        }
        if parts.is_empty() && !follow_last {
            break;
        }
        if let Kind::Link(target) = kind(&real)? {
            links += 1;
            if links > MAX_LINKS || target.len() > MAX_TARGET {
                return Ok(None);
            }
            if target.starts_with(b"/") {
                real.clear();
            } else {
                real.truncate(split(&real).0.len());
            }
            parts.extend(target.rsplit(|byte| *byte == b'/').map(<[u8]>::to_vec));
        }
    }
    Ok(Some(real))
}
