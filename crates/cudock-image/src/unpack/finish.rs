//! What is done to a layer when all its entries are there: what it hides, and what its folders are like.

use rustix::fs::{FileType, Mode, XattrFlags, fsetxattr, mknodat};
use rustix::io::Errno;

use super::beneath::split;
use super::error::LayerError;
use super::meta::Meta;
use super::tally::Tally;
use super::upper::{Own, Upper};

/// A layer that is complete.
pub(super) struct Finished {
    pub(super) tally: Tally,
    pub(super) depends: bool,
    pub(super) hides_all: bool,
    /// What the archive says of the root.
    pub(super) root: Option<Meta>,
}

impl Upper<'_> {
    /// Hides what the layer removes, and gives folders what their entries say: last, since writing to a folder
    /// changes its time, and its mode may forbid it.
    pub(super) fn finish(mut self) -> Result<Finished, LayerError> {
        self.clear_aside();
        let left_out = std::mem::take(&mut self.left_out);
        if !self.removals.is_empty() || !left_out.is_empty() {
            let (names, folders) = self.lower_at_end()?.hidden();
            // A device that was not made still stands in the way of what lies below, and of all in there: first.
            for device in left_out {
                if self.lower()?.find(&device).map_err(LayerError::at(&device))?.is_some() {
                    self.hide(&device)?;
                }
            }
            for name in names {
                self.hide(&name)?;
            }
            for folder in folders {
                self.hide_contents(&folder)?;
            }
        }
        let root = self.folders.get(b"".as_slice()).map(|root| root.meta.clone());
        let root = root.filter(|_| self.root_is_described);
        let (depends, hides_all) = (self.depends(), self.hides_all);
        let folders = std::mem::take(&mut self.folders);
        // Those further down first: a folder may not let us in any more.
        for (path, folder) in folders.into_iter().rev() {
            let handle = self.root.whole_folder(&path).map_err(LayerError::at(&path))?;
            if folder.opaque && !path.is_empty() {
                let name = self.options.whiteouts.opaque();
                let set = fsetxattr(&handle, name, b"y", XattrFlags::empty());
                set.map_err(|error| LayerError::at(&path)(error.into()))?;
            }
            let applied = folder.meta.apply(&path, &handle, &self.options, self.ours, &mut self.tally);
            applied.map_err(LayerError::at(&path))?;
        }
        Ok(Finished { tally: self.tally, depends, hides_all, root })
    }

    /// Hides a name of lower layers, unless something in this layer does already.
    fn hide(&mut self, path: &[u8]) -> Result<(), LayerError> {
        if let Some(folder) = self.folders.get_mut(path) {
            folder.opaque = true;
            return Ok(());
        }
        if !matches!(self.own(path)?, Own::Nothing) {
            return Ok(());
        }
        let (folder, name) = split(path);
        self.make_folders(path, folder)?;
        let handle = self.root.folder(folder).map_err(LayerError::at(path))?;
        match mknodat(&handle, name, FileType::CharacterDevice, Mode::empty(), 0) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(LayerError::at(path)(error.into())),
        }
    }

    /// Hides all that lower layers have in a folder.
    fn hide_contents(&mut self, path: &[u8]) -> Result<(), LayerError> {
        if !self.folders.contains_key(path) {
            if !matches!(self.own(path)?, Own::Nothing) {
                return Ok(());
            }
            self.make_folders(path, path)?;
        }
        if let Some(folder) = self.folders.get_mut(path) {
            folder.opaque = true;
        }
        Ok(())
    }
}
