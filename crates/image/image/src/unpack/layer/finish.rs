//! Finishes a layer after all its entries: whiteouts and directory metadata.

use rustix::fs::{FileType, Mode, XattrFlags, fsetxattr, mknodat};
use rustix::io::Errno;

use super::meta::FileMeta;
use super::upper::{UpperEntry, UpperLayer};
use crate::unpack::confined_path::split_path;
use crate::unpack::counters::UnpackCounters;
use crate::unpack::error::LayerError;

pub(in crate::unpack) struct FinishedLayer {
    pub(in crate::unpack) counters: UnpackCounters,
    pub(in crate::unpack) depends_on_lower: bool,
    pub(in crate::unpack) hides_all: bool,
    /// Metadata of the root, if the archive has any.
    pub(in crate::unpack) root: Option<FileMeta>,
}

impl UpperLayer<'_> {
    /// Writes whiteouts, then sets directory metadata. The latter comes last because writing to a directory changes its
    /// time, and its mode may deny access.
    pub(in crate::unpack) fn finish(mut self) -> Result<FinishedLayer, LayerError> {
        self.clear_aside();
        let skipped = std::mem::take(&mut self.skipped);
        if !self.removals.is_empty() || !skipped.is_empty() {
            let (names, directories) = self.lower_at_end()?.hidden();
            // A skipped device still hides what is below it, so it comes first.
            for device in skipped {
                if self.lower()?.find(&device).map_err(LayerError::write(&device))?.is_some() {
                    self.hide(&device)?;
                }
            }
            for name in names {
                self.hide(&name)?;
            }
            for directory in directories {
                self.hide_contents(&directory)?;
            }
        }
        let root = self.directories.get(b"".as_slice()).map(|root| root.meta.clone());
        let root = root.filter(|_| self.root_is_described);
        let (depends_on_lower, hides_all) = (self.depends_on_lower(), self.hides_all);
        let directories = std::mem::take(&mut self.directories);
        // Descendants first, because a directory may become inaccessible.
        for (path, directory) in directories.into_iter().rev() {
            let handle = self.root.readable_dir(&path).map_err(LayerError::write(&path))?;
            if directory.opaque && !path.is_empty() {
                let name = self.options.whiteouts.opaque();
                let set = fsetxattr(&handle, name, b"y", XattrFlags::empty());
                set.map_err(LayerError::write(&path))?;
            }
            let applied =
                directory.meta.apply(&path, &handle, &self.options, self.current_user, &mut self.counters);
            applied.map_err(LayerError::write(&path))?;
        }
        Ok(FinishedLayer { counters: self.counters, depends_on_lower, hides_all, root })
    }

    /// Hides a name of lower layers, unless this layer already does.
    fn hide(&mut self, path: &[u8]) -> Result<(), LayerError> {
        if let Some(directory) = self.directories.get_mut(path) {
            directory.opaque = true;
            return Ok(());
        }
        if !matches!(self.own(path)?, UpperEntry::Nothing) {
            return Ok(());
        }
        let (directory, name) = split_path(path);
        self.create_dirs(path, directory)?;
        let handle = self.root.dir(directory).map_err(LayerError::write(path))?;
        match mknodat(&handle, name, FileType::CharacterDevice, Mode::empty(), 0) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(LayerError::write(path)(error)),
        }
    }

    /// Hides everything that lower layers have in a directory.
    fn hide_contents(&mut self, path: &[u8]) -> Result<(), LayerError> {
        if !self.directories.contains_key(path) {
            if !matches!(self.own(path)?, UpperEntry::Nothing) {
                return Ok(());
            }
            self.create_dirs(path, path)?;
        }
        if let Some(directory) = self.directories.get_mut(path) {
            directory.opaque = true;
        }
        Ok(())
    }
}
