//! What is written beside a layer when it is complete.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::finish::Finished;
use super::meta::Meta;
use super::tally::Tally;

/// The file's name.
pub(super) const RECORD: &str = "record.json";
/// The form of the record; another is not believed.
const FORM: u32 = 1;

/// What is known of a layer on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    form: u32,
    pub(super) tally: Tally,
    /// Whether nothing below it is seen.
    pub(super) hides_all: bool,
    /// What the archive says of the root.
    pub(super) root: Option<Meta>,
    /// When the machine was running that wrote it.
    boot: String,
    /// Whether it is on the disk for sure.
    pub(super) settled: bool,
}

impl Record {
    pub(super) fn new(finished: Finished) -> Self {
        let Finished { tally, hides_all, root, .. } = finished;
        Self { form: FORM, tally, hides_all, root, boot: boot(), settled: false }
    }

    /// The record of a layer; none where it is missing or not to be believed. One that was written without waiting
    /// for the disk is good for as long as the machine runs: what was in its memory at a crash is lost, and the layer
    /// has to be unpacked anew.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let record: Self = serde_json::from_slice(&fs::read(folder.join(RECORD)).ok()?).ok()?;
        (record.form == FORM && (record.settled || record.boot == boot())).then_some(record)
    }

    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let new = folder.join("record.new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(new, folder.join(RECORD))
    }
}

/// What tells one start of the machine from the next.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
