//! An image that is ready to be mounted.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Gid, Mode, Timespec, Timestamps, Uid, chmodat, chownat, utimensat};

use super::meta::Meta;
use super::shelf::{Held, Shelf};
use crate::manifest::Config;

/// Layers that nobody removes for as long as this lives.
#[derive(Debug, Clone, Default)]
pub struct Hold {
    _layers: Vec<Arc<Held>>,
}

impl Hold {
    pub(super) fn new(layers: Vec<Arc<Held>>) -> Self {
        Self { _layers: layers }
    }
}

/// An unpacked image. Its layers are held for as long as this lives.
#[derive(Debug, Clone)]
pub struct Unpacked {
    /// The folders to lay over each other, the uppermost first, as overlayfs's `lowerdir` wants them.
    pub layers: Vec<PathBuf>,
    /// The image's configuration.
    pub config: Config,
    /// What the root of the image is like. overlayfs takes this from the uppermost folder, which is not the image's
    /// but the container's own: see [`RootMeta::apply`].
    pub root: RootMeta,
    /// What was left out on purpose, in words.
    pub notes: Vec<String>,
    /// The store, and the layers by names that are short, below it.
    short: (PathBuf, Vec<PathBuf>),
    hold: Hold,
}

/// Owner, mode and time of the image's root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootMeta {
    /// Permission bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// When it was changed, in seconds since the epoch.
    pub changed: i64,
}

impl RootMeta {
    /// Makes a folder, such as a container's `upperdir`, like the root of the image. Who may not give it away keeps it.
    pub fn apply(&self, folder: &Path) -> io::Result<()> {
        let given = chownat(
            CWD,
            folder,
            Some(Uid::from_raw(self.uid)),
            Some(Gid::from_raw(self.gid)),
            AtFlags::SYMLINK_NOFOLLOW,
        );
        match given {
            Err(error) if (self.uid, self.gid) == (0, 0) => return Err(error.into()),
            _ => {}
        }
        chmodat(CWD, folder, Mode::from_raw_mode(self.mode), AtFlags::empty())?;
        let time = Timespec { tv_sec: self.changed, tv_nsec: 0 };
        let times = Timestamps { last_access: time, last_modification: time };
        Ok(utimensat(CWD, folder, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

impl Unpacked {
    pub(super) fn new(folder: &Path, shelf: &Shelf, layers: &[Arc<Held>], config: Config) -> Self {
        let notes = layers.iter().enumerate().flat_map(|(index, layer)| {
            let notes = layer.record.tally.notes().into_iter();
            notes.map(move |note| format!("layer {}: {note}", index + 1))
        });
        let notes = notes.collect();
        let hides = layers.iter().rposition(|layer| layer.record.hides_all).unwrap_or(0);
        let seen = || layers.iter().skip(hides).rev();
        let described = seen().find_map(|layer| layer.record.root.clone());
        let Meta { mode, uid, gid, mtime, .. } = described.unwrap_or_else(Meta::of_unnamed_folder);
        let root = RootMeta { mode, uid, gid, changed: mtime.seconds };
        let paths: Vec<PathBuf> = seen().map(|layer| layer.path.clone()).collect();
        let short = paths.iter().map(|path| shelf.short(path).unwrap_or_else(|| path.clone())).collect();
        let hold = Hold::new(seen().cloned().collect());
        Self { layers: paths, config, root, notes, short: (folder.to_owned(), short), hold }
    }

    /// A folder that is a root file system already: it is the one layer, and nothing holds it.
    pub fn of_folder(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let meta = std::fs::metadata(&folder).ok();
        let root = meta.map_or(RootMeta { mode: 0o755, uid: 0, gid: 0, changed: 0 }, |meta| {
            use std::os::unix::fs::MetadataExt;
            RootMeta { mode: meta.mode() & 0o7777, uid: meta.uid(), gid: meta.gid(), changed: meta.mtime() }
        });
        Self {
            layers: vec![folder.clone()],
            config: Config::default(),
            root,
            notes: Vec::new(),
            short: (PathBuf::from("/"), vec![folder]),
            hold: Hold::default(),
        }
    }

    /// What holds the layers, to keep it longer than this.
    pub fn hold(&self) -> Hold {
        self.hold.clone()
    }

    /// The value of the mount option `lowerdir`, and the folder that has to be the working directory of whoever mounts:
    /// names below it are short, since all options together may take no more than a page.
    pub fn lowerdir(&self) -> (&Path, OsString) {
        let escaped: Vec<Vec<u8>> = self.short.1.iter().map(|path| escaped(path.as_os_str())).collect();
        (&self.short.0, OsString::from_vec(escaped.join(&b':')))
    }
}

/// overlayfs splits at colons, and mount options at commas.
fn escaped(path: &OsStr) -> Vec<u8> {
    let letters = path.as_bytes().iter();
    letters
        .flat_map(|letter| match letter {
            b':' | b',' | b'\\' => vec![b'\\', *letter],
            other => vec![*other],
        })
        .collect()
}
