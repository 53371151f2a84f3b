//! Disk usage of a layer store.

use std::fs::File;
use std::path::Path;

use rustix::fs::syncfs;

use super::LayerStore;
use super::error::UnpackError;

/// The result of [`LayerStore::prune`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    pub layers: usize,
    /// The size of their files.
    pub bytes: u64,
}

impl LayerStore {
    /// Removes layers that are not locked and for which `in_use`, called with the directory of the layer's files, returns
    /// false: a stopped container holds no lock, but needs its layers. It is called after the layer was locked, so that it also
    /// knows the containers that were just created from it. Leftovers of killed processes are removed, too.
    pub fn prune(&self, in_use: &dyn Fn(&Path) -> bool) -> Result<Pruned, UnpackError> {
        self.layer_dir.sweep()?;
        let mut pruned = Pruned::default();
        for name in self.layer_dir.names()?.0 {
            let bytes = self.layer_dir.record(&name).map_or(0, |record| record.counters.bytes);
            if self.layer_dir.discard(&name, &|| !in_use(&self.layer_dir.files(&name)))? {
                pruned.layers += 1;
                pruned.bytes += bytes;
            }
        }
        Ok(pruned)
    }

    /// Waits until all layers are on disk. Unpacking does not, because it is slow; until this is called, layers are
    /// unpacked again after a reboot. Call it when there is time, such as after a container has started.
    pub fn sync(&self) -> Result<(), UnpackError> {
        let names = self.layer_dir.names()?.0;
        let records = names.iter().filter_map(|name| Some((name, self.layer_dir.record(name)?)));
        let unsynced: Vec<_> = records.filter(|(_, record)| !record.synced).collect();
        if unsynced.is_empty() {
            return Ok(());
        }
        let directory = self.layer_dir.directory();
        let io_error = UnpackError::store("sync", directory);
        syncfs(File::open(directory).map_err(io_error)?).map_err(UnpackError::store("sync", directory))?;
        for (name, mut record) in unsynced {
            record.synced = true;
            // A layer that was removed meanwhile needs no record.
            if self.layer_dir.take(name)?.is_some() {
                record.write(&directory.join(name)).map_err(io_error)?;
            }
        }
        Ok(())
    }
}
