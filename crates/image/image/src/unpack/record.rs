//! The record file of a complete layer.

use std::fs;
use std::io;
use std::path::Path;

use cudock_base::files::write_unsynced;
use serde::{Deserialize, Serialize};

use super::counters::UnpackCounters;
use super::layer::finish::FinishedLayer;
use super::layer::meta::FileMeta;

/// The name of the file.
pub(super) const RECORD: &str = "record.json";
/// The version of the file format.
const VERSION: u32 = 1;

/// Metadata of a layer on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LayerRecord {
    version: u32,
    pub(super) counters: UnpackCounters,
    /// Whether it hides all layers below.
    pub(super) hides_all: bool,
    /// Metadata of the root, if the archive has any.
    pub(super) root: Option<FileMeta>,
    /// The boot id of the machine when it was written.
    boot_id: String,
    /// Whether it is known to be on disk.
    pub(super) synced: bool,
}

impl LayerRecord {
    pub(super) fn new(finished: FinishedLayer) -> Self {
        let FinishedLayer { counters, hides_all, root, .. } = finished;
        Self { version: VERSION, counters, hides_all, root, boot_id: current_boot_id(), synced: false }
    }

    /// Reads the record of a layer; none if it is missing or invalid. A record that was not synced is valid only until the
    /// next boot, because a crash may have lost part of the layer.
    pub(super) fn read(directory: &Path) -> Option<Self> {
        let record: Self = serde_json::from_slice(&fs::read(directory.join(RECORD)).ok()?).ok()?;
        (record.version == VERSION && (record.synced || record.boot_id == current_boot_id()))
            .then_some(record)
    }

    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        write_unsynced(&directory.join(RECORD), &serde_json::to_vec(self)?)
    }
}

fn current_boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
