//! An unpacked image, ready to be mounted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Gid, Mode, Timespec, Timestamps, Uid, chmodat, chownat, utimensat};

use super::layer::meta::FileMeta;
use super::layer_dir::LockedLayer;
use crate::manifest::ImageConfig;

/// An unpacked image. Its layers stay locked until it is dropped.
#[derive(Debug, Clone)]
pub struct Unpacked {
    /// The directories of the layers, uppermost first, as in overlayfs's `lowerdir`.
    pub layers: Vec<PathBuf>,
    pub config: ImageConfig,
    /// Metadata of the image's root. overlayfs takes it from the uppermost directory, which is the container's own: see
    /// [`RootMeta::apply`].
    pub root: RootMeta,
    /// Notes about entries that were skipped on purpose.
    pub notes: Vec<String>,
    _locks: Vec<Arc<LockedLayer>>,
}

/// Owner, mode and time of the image's root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootMeta {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// The modification time, in seconds since the epoch.
    pub changed: i64,
}

impl RootMeta {
    /// Applies the metadata to a directory, such as a container's `upperdir`. Without permission to change the owner, it is
    /// kept.
    pub fn apply(&self, directory: &Path) -> io::Result<()> {
        let (uid, gid) = (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)));
        match chownat(CWD, directory, uid, gid, AtFlags::SYMLINK_NOFOLLOW) {
            Err(error) if (self.uid, self.gid) == (0, 0) => return Err(error.into()),
            _ => {}
        }
        chmodat(CWD, directory, Mode::from_raw_mode(self.mode), AtFlags::empty())?;
        let time = Timespec { tv_sec: self.changed, tv_nsec: 0 };
        let times = Timestamps { last_access: time, last_modification: time };
        Ok(utimensat(CWD, directory, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

impl Unpacked {
    pub(super) fn new(layers: &[Arc<LockedLayer>], config: ImageConfig) -> Self {
        let notes = layers.iter().enumerate().flat_map(|(index, layer)| {
            let notes = layer.record.counters.notes().into_iter();
            notes.map(move |note| format!("layer {}: {note}", index + 1))
        });
        let notes = notes.collect();
        let hides = layers.iter().rposition(|layer| layer.record.hides_all).unwrap_or(0);
        let seen = || layers.iter().skip(hides).rev();
        let described = seen().find_map(|layer| layer.record.root.clone());
        let FileMeta { mode, uid, gid, mtime, .. } = described.unwrap_or_else(FileMeta::default_dir);
        let root = RootMeta { mode, uid, gid, changed: mtime.seconds };
        let paths = seen().map(|layer| layer.path.clone()).collect();
        Self { layers: paths, config, root, notes, _locks: seen().cloned().collect() }
    }
}
