//! What a store takes on disk, and less of it.

use std::fs::File;
use std::path::Path;

use rustix::fs::syncfs;

use super::Store;
use super::error::UnpackError;

/// What [`Store::prune`] removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// How many layers.
    pub layers: usize,
    /// How many bytes their files had.
    pub bytes: u64,
}

impl Store {
    /// Removes layers that nobody holds and that `in_use`, asked with the folder of a layer's files, does not claim:
    /// a container that is stopped holds nothing, and starts again. What killed runs left goes as well.
    pub fn prune(&self, in_use: &dyn Fn(&Path) -> bool) -> Result<Pruned, UnpackError> {
        self.shelf.sweep()?;
        let mut pruned = Pruned::default();
        for name in self.shelf.names()?.0 {
            if in_use(&self.shelf.files(&name)) {
                continue;
            }
            let bytes = self.shelf.record(&name).map_or(0, |record| record.tally.bytes);
            if self.shelf.discard(&name)? {
                pruned.layers += 1;
                pruned.bytes += bytes;
            }
        }
        Ok(pruned)
    }

    /// How many bytes the files of all layers have.
    pub fn size(&self) -> Result<u64, UnpackError> {
        let names = self.shelf.names()?.0;
        Ok(names.iter().filter_map(|name| self.shelf.record(name)).map(|record| record.tally.bytes).sum())
    }

    /// Waits until all layers are on the disk. Unpacking does not, since it takes long; until then, layers are
    /// unpacked anew after a restart of the machine. To be called when there is time, such as after a container has
    /// started.
    pub fn settle(&self) -> Result<(), UnpackError> {
        let names = self.shelf.names()?.0;
        let records = names.iter().filter_map(|name| Some((name, self.shelf.record(name)?)));
        let unsettled: Vec<_> = records.filter(|(_, record)| !record.settled).collect();
        if unsettled.is_empty() {
            return Ok(());
        }
        let folder = self.shelf.folder();
        let wrong = |error| UnpackError::store("sync", folder)(error);
        syncfs(File::open(folder).map_err(wrong)?).map_err(|error| wrong(error.into()))?;
        for (name, mut record) in unsettled {
            record.settled = true;
            // A layer that was removed meanwhile needs no record.
            if self.shelf.take(name)?.is_some() {
                record.write(&folder.join(name)).map_err(wrong)?;
            }
        }
        Ok(())
    }
}
