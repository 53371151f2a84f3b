//! The layer that is being unpacked: its folders, and where in it a path of the archive leads.
//!
//! A layer is unpacked by itself, before or while those below it are. What lies below matters in few places only: a
//! folder that the archive uses without describing it, a hard link to a file it does not have, a name it removes.
//! There the layers below are waited for and asked, and the result is good above these layers alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, mkdirat, unlinkat};
use rustix::io::Errno;

use super::beneath::{Beneath, above, entry, join, kind, leads_to, split};
use super::error::{LayerError, shown};
use super::lower::{Kind, Lower, Removal, real};
use super::meta::Meta;
use super::options::StoreOptions;
use super::remove::remove_below;
use super::tally::Tally;

/// Linux takes no path that is longer, and no name.
const MAX_PATH: usize = 4095;
const MAX_NAME: usize = 255;
/// What the names of folders and removals of one layer may take in memory.
const MAX_BOOKS: usize = 256 << 20;

/// Says what lies below, once it is there. Removals are found out beforehand where they are not given.
pub(super) type Below<'j> = dyn FnMut(Option<&[Removal]>) -> Result<Lower, LayerError> + 'j;

/// A layer in the making.
pub(super) struct Upper<'j> {
    pub(super) root: Beneath,
    /// A folder beside it, for what has to be put aside.
    pub(super) spare: OwnedFd,
    pub(super) options: StoreOptions,
    /// Who we are: what is made belongs to us.
    pub(super) ours: (u32, u32),
    pub(super) tally: Tally,
    pub(super) folders: BTreeMap<Vec<u8>, Folder>,
    /// Devices that were not made.
    pub(super) left_out: BTreeSet<Vec<u8>>,
    pub(super) removals: Vec<Removal>,
    /// Whether it hides everything below.
    pub(super) hides_all: bool,
    /// Whether an entry said what the root is like.
    pub(super) root_is_described: bool,
    below: &'j mut Below<'j>,
    lower: Option<Lower>,
    books: usize,
    /// The folder that was written to last, as the archive calls it: entries of one folder come one after the other.
    last: Option<(Vec<u8>, Place)>,
}

/// A folder of the layer.
pub(super) struct Folder {
    pub(super) meta: Meta,
    /// Whether nothing of lower layers is seen in it, since something stood in its place or in that of one above.
    pub(super) closed: bool,
    /// Whether overlayfs has to be told so.
    pub(super) opaque: bool,
}

/// A folder to write to.
pub(super) struct Place {
    /// Its path without links.
    pub(super) real: Vec<u8>,
    pub(super) handle: OwnedFd,
}

impl<'j> Upper<'j> {
    /// Begins in an empty folder.
    pub(super) fn new(
        folder: &Path,
        spare: OwnedFd,
        options: StoreOptions,
        below: &'j mut Below<'j>,
    ) -> io::Result<Self> {
        let root = Beneath::open(folder)?;
        let own = rustix::fs::fstat(root.root())?;
        let meta = Meta::of_unnamed_folder();
        let folders = BTreeMap::from([(Vec::new(), Folder { meta, closed: false, opaque: false })]);
        Ok(Self {
            root,
            spare,
            options,
            ours: (own.st_uid, own.st_gid),
            tally: Tally::default(),
            folders,
            left_out: BTreeSet::new(),
            removals: Vec::new(),
            hides_all: false,
            root_is_described: false,
            below,
            lower: None,
            books: 0,
            last: None,
        })
    }

    /// Whether what lies below has been asked for, so that the result is good there alone.
    pub(super) fn depends(&self) -> bool {
        self.lower.is_some()
    }

    /// What lies below.
    pub(super) fn lower(&mut self) -> Result<&mut Lower, LayerError> {
        if self.lower.is_none() {
            self.lower = Some((self.below)(None)?);
        }
        self.lower.as_mut().ok_or(LayerError::Stopped)
    }

    /// The same at the end of the archive, when all that it removes is known.
    pub(super) fn lower_at_end(&mut self) -> Result<&mut Lower, LayerError> {
        if self.lower.is_none() {
            self.lower = Some((self.below)(Some(&self.removals))?);
        }
        self.lower()
    }

    /// Notes that a layer removes something.
    pub(super) fn removes(&mut self, removal: Removal) -> Result<(), LayerError> {
        match &removal {
            Removal::Contents(path) if path.is_empty() => self.hides_all = true,
            Removal::Contents(path) | Removal::Name(path) => self.remember(path.len())?,
        }
        self.removals.push(removal);
        Ok(())
    }

    pub(super) fn remember(&mut self, length: usize) -> Result<(), LayerError> {
        self.books += length + size_of::<Folder>();
        if self.books > MAX_BOOKS {
            return Err(LayerError::refused(format!("names of folders take more than {MAX_BOOKS} bytes")));
        }
        Ok(())
    }

    /// The place an entry goes to, and its name there.
    pub(super) fn place(&mut self, path: &[u8]) -> Result<(Place, Vec<u8>), LayerError> {
        let (parent, name) = split(path);
        check_path(path)?;
        if let Some((_, place)) = self.last.take_if(|(last, _)| last == parent) {
            return Ok((place, name.to_vec()));
        }
        self.last = None;
        let real = self.real(path, parent)?;
        self.make_folders(path, &real)?;
        let handle = self.root.folder(&real).map_err(LayerError::at(path))?;
        Ok((Place { real, handle }, name.to_vec()))
    }

    /// Keeps a place for the next entry. Not one that a link leads to: what was written may have been that link.
    pub(super) fn keep(&mut self, path: &[u8], place: Place) {
        let parent = split(path).0;
        self.last = (place.real == parent).then(|| (parent.to_vec(), place));
    }

    /// Where a folder of the archive really is.
    pub(super) fn real(&mut self, path: &[u8], folder: &[u8]) -> Result<Vec<u8>, LayerError> {
        let real = real(folder, true, |path| self.kind(path))?;
        let real = real.ok_or_else(|| {
            LayerError::refused(format!("`{}` leads through links in a circle", shown(path)))
        })?;
        check_length(path, real.len())?;
        Ok(real)
    }

    /// What is at a path without links on its way, in this layer or below.
    pub(super) fn kind(&mut self, path: &[u8]) -> Result<Kind, LayerError> {
        if self.folders.contains_key(path) {
            return Ok(Kind::Folder);
        }
        if self.left_out.contains(path) {
            return Ok(Kind::Other);
        }
        match self.own(path)? {
            Own::Entry(found) => Ok(found),
            Own::HidesBelow => Ok(Kind::Nothing),
            Own::Nothing => self.lower()?.kind(path).map_err(LayerError::at(path)),
        }
    }

    /// What this layer itself has at a path that is no folder.
    pub(super) fn own(&self, path: &[u8]) -> Result<Own, LayerError> {
        let mut towards = path;
        for folder in above(path) {
            let Some(known) = self.folders.get(folder) else {
                towards = folder;
                continue;
            };
            let name = split(towards).1;
            let handle = self.root.folder(folder).map_err(LayerError::at(path))?;
            let found = entry(&handle, name).map_err(LayerError::at(path))?;
            let is_it = towards.len() == path.len();
            return Ok(match found {
                Some(stat) if is_it && kind(&stat) == FileType::Symlink => {
                    Own::Entry(Kind::Link(leads_to(&handle, name).map_err(LayerError::at(path))?))
                }
                Some(_) if is_it => Own::Entry(Kind::Other),
                Some(_) => Own::HidesBelow,
                None if known.closed || self.left_out.contains(towards) => Own::HidesBelow,
                None => Own::Nothing,
            });
        }
        Ok(Own::Nothing)
    }

    /// Makes a folder and those above it, for `path`. What the archive does not describe is as it is below.
    pub(super) fn make_folders(&mut self, path: &[u8], real: &[u8]) -> Result<(), LayerError> {
        let mut missing: Vec<&[u8]> = Vec::new();
        for folder in std::iter::once(real).chain(above(real)) {
            if self.folders.contains_key(folder) {
                break;
            }
            missing.push(folder);
        }
        for folder in missing.into_iter().rev() {
            let replaced = self.clear(folder)?;
            let inherited = self.is_closed(split(folder).0);
            let closed = replaced || inherited;
            let meta = if closed {
                None
            } else {
                self.lower()?.folder_meta(folder).map_err(LayerError::at(path))?
            };
            self.make_folder(folder, meta.unwrap_or_else(Meta::of_unnamed_folder), replaced)?;
        }
        Ok(())
    }

    /// Makes one folder where nothing is.
    pub(super) fn make_folder(&mut self, real: &[u8], meta: Meta, replaces: bool) -> Result<(), LayerError> {
        let (parent, name) = split(real);
        let handle = self.root.folder(parent).map_err(LayerError::at(real))?;
        mkdirat(&handle, name, Mode::RWXU).map_err(|error| LayerError::at(real)(error.into()))?;
        self.note_folder(real, meta, replaces)
    }

    /// Notes a folder that was made.
    pub(super) fn note_folder(&mut self, real: &[u8], meta: Meta, replaces: bool) -> Result<(), LayerError> {
        self.remember(real.len())?;
        let closed = replaces || self.is_closed(split(real).0);
        self.folders.insert(real.to_vec(), Folder { meta, closed, opaque: replaces });
        Ok(())
    }

    fn is_closed(&self, folder: &[u8]) -> bool {
        self.folders.get(folder).is_some_and(|folder| folder.closed)
    }

    /// Removes what this layer has at a path; whether there was anything.
    pub(super) fn clear(&mut self, real: &[u8]) -> Result<bool, LayerError> {
        let left_out = self.left_out.remove(real);
        let (parent, name) = split(real);
        if !self.folders.contains_key(parent) {
            return Ok(left_out);
        }
        let handle = self.root.folder(parent).map_err(LayerError::at(real))?;
        if self.folders.contains_key(real) {
            let whole = self.root.whole_folder(real).map_err(LayerError::at(real))?;
            remove_below(&whole).map_err(LayerError::at(real))?;
            let gone = |error: Errno| LayerError::at(real)(error.into());
            unlinkat(&handle, name, AtFlags::REMOVEDIR).map_err(gone)?;
            self.forget(real);
            return Ok(true);
        }
        match unlinkat(&handle, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(left_out),
            Err(error) => Err(LayerError::at(real)(error.into())),
        }
    }

    /// Forgets a folder and all that was in it.
    fn forget(&mut self, real: &[u8]) {
        self.last = None;
        self.folders.remove(real);
        let (from, to) = ([real, b"/"].concat(), [real, b"0"].concat());
        let below: Vec<Vec<u8>> =
            self.folders.range(from.clone()..to.clone()).map(|(path, _)| path.clone()).collect();
        for path in below {
            self.folders.remove(&path);
        }
        let left_out: Vec<Vec<u8>> = self.left_out.range(from..to).cloned().collect();
        for path in left_out {
            self.left_out.remove(&path);
        }
    }
}

/// What a layer itself has at a path.
pub(super) enum Own {
    Entry(Kind),
    /// Nothing, and what lies below is not seen there either.
    HidesBelow,
    Nothing,
}

fn check_length(path: &[u8], length: usize) -> Result<(), LayerError> {
    if length <= MAX_PATH {
        return Ok(());
    }
    Err(LayerError::refused(format!(
        "`{}` is a path of {length} bytes, and Linux takes {MAX_PATH}",
        shown(path)
    )))
}

/// Refuses a path that Linux cannot name.
pub(super) fn check_path(path: &[u8]) -> Result<(), LayerError> {
    check_text(path)?;
    let longest = path.split(|byte| *byte == b'/').map(<[u8]>::len).max().unwrap_or(0);
    if longest > MAX_NAME {
        let shown = shown(path);
        return Err(LayerError::refused(format!(
            "`{shown}` has a name of {longest} bytes, and Linux takes {MAX_NAME}"
        )));
    }
    Ok(())
}

/// Refuses what cannot stand in a link.
pub(super) fn check_text(text: &[u8]) -> Result<(), LayerError> {
    check_length(text, text.len())?;
    if text.contains(&0) {
        return Err(LayerError::refused(format!("`{}` has a byte of zero in its name", shown(text))));
    }
    Ok(())
}

/// The path of an entry in a folder.
pub(super) fn at(place: &Place, name: &[u8]) -> Vec<u8> {
    join(&place.real, name)
}
