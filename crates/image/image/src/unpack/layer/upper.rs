//! The layer being unpacked: its directories, and how paths of the archive resolve in it.
//!
//! A layer is unpacked independently of those below it, often at the same time. They matter only in a few cases: a
//! directory that the archive uses without describing it, a hard link to a file that it does not contain, a whiteout.
//! Then the layers below are waited for, and the result is only valid on top of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, mkdirat, unlinkat};
use rustix::io::Errno;

use super::lower::{LowerLayers, PathKind, Removal, real_path};
use super::meta::FileMeta;
use crate::unpack::confined_path::{
    ConfinedRoot, ancestors, file_type, join_path, link_target, split_path, stat_entry,
};
use crate::unpack::counters::UnpackCounters;
use crate::unpack::error::{LayerError, printable};
use crate::unpack::options::StoreOptions;
use crate::unpack::remove::remove_contents;

/// Limits of Linux for paths and names.
const MAX_PATH: usize = 4095;
const MAX_NAME: usize = 255;
/// The memory that paths of one layer may use.
const MAX_PATH_MEMORY: usize = 256 << 20;

/// Opens the layers below, once they are complete. If no removals are given, they are read from the archive first.
pub(in crate::unpack) type OpenLower<'j> =
    dyn FnMut(Option<&[Removal]>) -> Result<LowerLayers, LayerError> + 'j;

/// A layer being unpacked.
pub(in crate::unpack) struct UpperLayer<'j> {
    pub(in crate::unpack) root: ConfinedRoot,
    /// A directory for files that are moved aside.
    pub(in crate::unpack) spare: OwnedFd,
    pub(in crate::unpack) options: StoreOptions,
    /// The owner of new files.
    pub(in crate::unpack) current_user: (u32, u32),
    pub(in crate::unpack) counters: UnpackCounters,
    pub(in crate::unpack) directories: BTreeMap<Vec<u8>, UpperDir>,
    /// Devices that were not created.
    pub(in crate::unpack) skipped: BTreeSet<Vec<u8>>,
    pub(in crate::unpack) removals: Vec<Removal>,
    /// Whether it hides all layers below.
    pub(in crate::unpack) hides_all: bool,
    pub(in crate::unpack) root_is_described: bool,
    below: &'j mut OpenLower<'j>,
    lower: Option<LowerLayers>,
    path_memory: usize,
    /// The directory of the previous entry, as named by the archive: entries of a directory are usually adjacent.
    last: Option<(Vec<u8>, TargetDir)>,
}

/// A directory of the layer.
pub(in crate::unpack) struct UpperDir {
    pub(in crate::unpack) meta: FileMeta,
    /// Whether lower layers are hidden in it, because it or an ancestor replaced another file.
    pub(in crate::unpack) hides_lower: bool,
    /// Whether it must be marked for overlayfs.
    pub(in crate::unpack) opaque: bool,
}

/// A directory to create an entry in.
pub(in crate::unpack) struct TargetDir {
    /// The path without symlinks.
    pub(in crate::unpack) real: Vec<u8>,
    pub(in crate::unpack) handle: OwnedFd,
}

impl TargetDir {
    pub(in crate::unpack) fn entry_path(&self, name: &[u8]) -> Vec<u8> {
        join_path(&self.real, name)
    }
}

impl<'j> UpperLayer<'j> {
    /// Starts in an empty directory.
    pub(in crate::unpack) fn new(
        directory: &Path,
        spare: OwnedFd,
        options: StoreOptions,
        below: &'j mut OpenLower<'j>,
    ) -> io::Result<Self> {
        let root = ConfinedRoot::open(directory)?;
        let own = rustix::fs::fstat(root.root())?;
        let meta = FileMeta::default_dir();
        let directories =
            BTreeMap::from([(Vec::new(), UpperDir { meta, hides_lower: false, opaque: false })]);
        Ok(Self {
            root,
            spare,
            options,
            current_user: (own.st_uid, own.st_gid),
            counters: UnpackCounters::default(),
            directories,
            skipped: BTreeSet::new(),
            removals: Vec::new(),
            hides_all: false,
            root_is_described: false,
            below,
            lower: None,
            path_memory: 0,
            last: None,
        })
    }

    /// Whether the lower layers were needed, so that the result depends on them.
    pub(in crate::unpack) fn depends_on_lower(&self) -> bool {
        self.lower.is_some()
    }

    pub(in crate::unpack) fn lower(&mut self) -> Result<&mut LowerLayers, LayerError> {
        if self.lower.is_none() {
            self.lower = Some((self.below)(None)?);
        }
        self.lower.as_mut().ok_or(LayerError::Stopped)
    }

    /// The lower layers at the end of the archive, when all removals are known.
    pub(in crate::unpack) fn lower_at_end(&mut self) -> Result<&mut LowerLayers, LayerError> {
        if self.lower.is_none() {
            self.lower = Some((self.below)(Some(&self.removals))?);
        }
        self.lower()
    }

    pub(in crate::unpack) fn removes(&mut self, removal: Removal) -> Result<(), LayerError> {
        match &removal {
            Removal::Contents(path) if path.is_empty() => self.hides_all = true,
            Removal::Contents(path) | Removal::Name(path) => self.count_path(path.len())?,
        }
        self.removals.push(removal);
        Ok(())
    }

    pub(in crate::unpack) fn count_path(&mut self, length: usize) -> Result<(), LayerError> {
        self.path_memory += length + size_of::<UpperDir>();
        if self.path_memory <= MAX_PATH_MEMORY {
            return Ok(());
        }
        Err(LayerError::rejected(format!("paths take more than {MAX_PATH_MEMORY} bytes of memory")))
    }

    /// The directory for an entry, and its name there.
    pub(in crate::unpack) fn target_dir(&mut self, path: &[u8]) -> Result<(TargetDir, Vec<u8>), LayerError> {
        let (parent, name) = split_path(path);
        check_path(path)?;
        if let Some((_, dir)) = self.last.take_if(|(last, _)| last == parent) {
            return Ok((dir, name.to_vec()));
        }
        self.last = None;
        let real = self.real_path(path, parent)?;
        self.create_dirs(path, &real)?;
        let handle = self.root.dir(&real).map_err(LayerError::write(path))?;
        Ok((TargetDir { real, handle }, name.to_vec()))
    }

    /// Keeps a directory for the next entry, unless it was reached by a symlink: the entry may have replaced that symlink.
    pub(in crate::unpack) fn keep(&mut self, path: &[u8], dir: TargetDir) {
        let parent = split_path(path).0;
        self.last = (dir.real == parent).then(|| (parent.to_vec(), dir));
    }

    /// Resolves a directory of the archive.
    pub(in crate::unpack) fn real_path(
        &mut self,
        path: &[u8],
        directory: &[u8],
    ) -> Result<Vec<u8>, LayerError> {
        let real = real_path(directory, true, |path| self.kind(path))?;
        let real = real.ok_or_else(|| {
            LayerError::rejected(format!("`{}` leads through a symlink loop", printable(path)))
        })?;
        check_length(path, real.len())?;
        Ok(real)
    }

    /// The kind of entry at a path without symlinks, in this layer or below.
    pub(in crate::unpack) fn kind(&mut self, path: &[u8]) -> Result<PathKind, LayerError> {
        if self.directories.contains_key(path) {
            return Ok(PathKind::Directory);
        }
        if self.skipped.contains(path) {
            return Ok(PathKind::Other);
        }
        match self.own(path)? {
            UpperEntry::Entry(found) => Ok(found),
            UpperEntry::HidesLower => Ok(PathKind::Nothing),
            UpperEntry::Nothing => self.lower()?.kind(path).map_err(LayerError::write(path)),
        }
    }

    /// The entry of this layer itself at a path that is not a directory.
    pub(in crate::unpack) fn own(&self, path: &[u8]) -> Result<UpperEntry, LayerError> {
        let mut component = path;
        for directory in ancestors(path) {
            let Some(known) = self.directories.get(directory) else {
                component = directory;
                continue;
            };
            let name = split_path(component).1;
            let handle = self.root.dir(directory).map_err(LayerError::write(path))?;
            let found = stat_entry(&handle, name).map_err(LayerError::write(path))?;
            let is_last = component.len() == path.len();
            return Ok(match found {
                Some(stat) if is_last && file_type(&stat) == FileType::Symlink => UpperEntry::Entry(
                    PathKind::Link(link_target(&handle, name).map_err(LayerError::write(path))?),
                ),
                Some(_) if is_last => UpperEntry::Entry(PathKind::Other),
                Some(_) => UpperEntry::HidesLower,
                None if known.hides_lower || self.skipped.contains(component) => UpperEntry::HidesLower,
                None => UpperEntry::Nothing,
            });
        }
        Ok(UpperEntry::Nothing)
    }

    /// Creates a directory and its ancestors. Those without an entry get the metadata they have below.
    pub(in crate::unpack) fn create_dirs(&mut self, path: &[u8], real: &[u8]) -> Result<(), LayerError> {
        let mut missing: Vec<&[u8]> = Vec::new();
        for directory in std::iter::once(real).chain(ancestors(real)) {
            if self.directories.contains_key(directory) {
                break;
            }
            missing.push(directory);
        }
        for directory in missing.into_iter().rev() {
            let replaced = self.clear(directory)?;
            let meta = if replaced || self.is_lower_hidden(split_path(directory).0) {
                None
            } else {
                self.lower()?.dir_meta(directory).map_err(LayerError::write(path))?
            };
            let (parent, name) = split_path(directory);
            let handle = self.root.dir(parent).map_err(LayerError::write(directory))?;
            mkdirat(&handle, name, Mode::RWXU).map_err(LayerError::write(directory))?;
            self.record_dir(directory, meta.unwrap_or_else(FileMeta::default_dir), replaced)?;
        }
        Ok(())
    }

    /// Records a directory that was created.
    pub(in crate::unpack) fn record_dir(
        &mut self,
        real: &[u8],
        meta: FileMeta,
        replaces: bool,
    ) -> Result<(), LayerError> {
        self.count_path(real.len())?;
        let hides_lower = replaces || self.is_lower_hidden(split_path(real).0);
        self.directories.insert(real.to_vec(), UpperDir { meta, hides_lower, opaque: replaces });
        Ok(())
    }

    fn is_lower_hidden(&self, directory: &[u8]) -> bool {
        self.directories.get(directory).is_some_and(|directory| directory.hides_lower)
    }

    /// Removes what this layer has at a path; returns whether there was anything.
    pub(in crate::unpack) fn clear(&mut self, real: &[u8]) -> Result<bool, LayerError> {
        let skipped = self.skipped.remove(real);
        let (parent, name) = split_path(real);
        if !self.directories.contains_key(parent) {
            return Ok(skipped);
        }
        let handle = self.root.dir(parent).map_err(LayerError::write(real))?;
        if self.directories.contains_key(real) {
            let whole = self.root.readable_dir(real).map_err(LayerError::write(real))?;
            remove_contents(&whole).map_err(LayerError::write(real))?;
            unlinkat(&handle, name, AtFlags::REMOVEDIR).map_err(LayerError::write(real))?;
            self.forget(real);
            return Ok(true);
        }
        match unlinkat(&handle, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(skipped),
            Err(error) => Err(LayerError::write(real)(error)),
        }
    }

    /// Removes the records of a directory and its contents.
    fn forget(&mut self, real: &[u8]) {
        self.last = None;
        self.directories.remove(real);
        let (from, to) = ([real, b"/"].concat(), [real, b"0"].concat());
        self.directories.extract_if(from.clone()..to.clone(), |_, _| true).for_each(drop);
        self.skipped.extract_if(from..to, |_| true).for_each(drop);
    }
}

/// The entry of a layer itself at a path.
pub(in crate::unpack) enum UpperEntry {
    Entry(PathKind),
    /// Nothing, and lower layers are hidden.
    HidesLower,
    Nothing,
}

fn check_length(path: &[u8], length: usize) -> Result<(), LayerError> {
    if length <= MAX_PATH {
        return Ok(());
    }
    let path = printable(path);
    Err(LayerError::rejected(format!("`{path}` is a path of {length} bytes, Linux supports {MAX_PATH}")))
}

/// Rejects a path that Linux does not support.
pub(in crate::unpack) fn check_path(path: &[u8]) -> Result<(), LayerError> {
    check_text(path)?;
    let longest = path.split(|byte| *byte == b'/').map(<[u8]>::len).max().unwrap_or(0);
    if longest > MAX_NAME {
        let message =
            format!("`{}` has a name of {longest} bytes, Linux supports {MAX_NAME}", printable(path));
        return Err(LayerError::rejected(message));
    }
    Ok(())
}

/// Rejects text that cannot be the target of a symlink.
pub(in crate::unpack) fn check_text(text: &[u8]) -> Result<(), LayerError> {
    check_length(text, text.len())?;
    if text.contains(&0) {
        return Err(LayerError::rejected(format!("`{}` contains a NUL byte", printable(text))));
    }
    Ok(())
}
