//! Unpacks one layer into the store.

use std::sync::atomic::{AtomicU64, Ordering};

use cudock_base::Digest;
use cudock_http::Progress;
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::entries::{path_of, removal};
use super::finish::FinishedLayer;
use super::lower::{LowerLayers, Removal};
use super::stream::{StoredLayer, read_hashed};
use super::upper::UpperLayer;
use crate::layer::{LayerInput, LayerLimits, TarError, TarReader};
use crate::open::Image;
use crate::unpack::error::{LayerError, UnpackError, printable};
use crate::unpack::layer_dir::{LayerDir, LockedLayer, PartialLayer};
use crate::unpack::options::StoreOptions;
use crate::unpack::record::LayerRecord;
use crate::unpack::scheduler::{Scheduler, Stopped, WorkSlot};

/// Bytes between two progress reports.
const REPORT: u64 = 4 << 20;

pub(in crate::unpack) struct LayerJob<'i> {
    pub(in crate::unpack) image: &'i Image,
    pub(in crate::unpack) layer_dir: &'i LayerDir,
    pub(in crate::unpack) options: StoreOptions,
    pub(in crate::unpack) scheduler: &'i Scheduler,
    pub(in crate::unpack) progress: &'i dyn Progress,
    pub(in crate::unpack) index: usize,
    pub(in crate::unpack) diff: &'i Digest,
    /// The name of this layer if it depends on the layers below.
    pub(in crate::unpack) chain_name: &'i str,
    /// The lowest layer with the same contents, if that is another one.
    pub(in crate::unpack) duplicate_of: Option<usize>,
}

impl LayerJob<'_> {
    /// Unpacks the layer and reports to the scheduler.
    pub(in crate::unpack) fn run(&self) {
        match self.unpack_layer() {
            Ok(held) => self.scheduler.finish(self.index, held),
            Err(LayerError::Stopped) => {}
            Err(error) => self.scheduler.fail(self.to_unpack_error(error)),
        }
    }

    fn unpack_layer(&self) -> Result<LockedLayer, LayerError> {
        if let Some(duplicate_of) = self.duplicate_of {
            self.scheduler.layer(duplicate_of)?;
        }
        let waiting = || self.progress.waiting(&self.diff.to_string());
        let partial = loop {
            if let Some(held) = find(self.layer_dir, self.diff, self.chain_name)? {
                return Ok(held);
            }
            if let Some(partial) = self.layer_dir.begin(self.chain_name, &waiting)? {
                break partial;
            }
        };
        // Another process may have finished it meanwhile, perhaps under the other name.
        if let Some(held) = find(self.layer_dir, self.diff, self.chain_name)? {
            return Ok(held);
        }
        let layer = self.image.layers.get(self.index).ok_or(LayerError::Stopped)?;
        let bytes = self.scheduler.fetch(|| layer.bytes())?.map_err(UnpackError::from)?;
        let mut slot = self.scheduler.work_slot(self.index, layer.size)?;
        let stored = StoredLayer { bytes: &bytes, is_own: layer.is_verified() };
        self.write_layer(stored, partial, &mut slot)
    }

    fn write_layer(
        &self,
        layer: StoredLayer<'_>,
        partial: PartialLayer,
        slot: &mut WorkSlot<'_>,
    ) -> Result<LockedLayer, LayerError> {
        let name = self.diff.to_string();
        self.progress.started(&name, Some(layer.bytes.len() as u64), 0);
        let consumed = AtomicU64::new(0);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let spare = openat(CWD, partial.spare(), flags, Mode::empty());
        let spare = spare.map_err(UnpackError::store("open", &partial.spare()))?;
        let mut below = |removals: Option<&[Removal]>| {
            let layers = slot.below()?;
            let seen = layers.iter().rev().scan(false, |hidden, layer| {
                let seen = !std::mem::replace(hidden, *hidden || layer.record.hides_all);
                seen.then_some(layer.path.as_path())
            });
            let lower = LowerLayers::open(seen, self.options);
            let mut lower = lower.map_err(UnpackError::store("read", self.layer_dir.directory()))?;
            let mut found = None;
            let removals = if let Some(removals) = removals {
                removals
            } else {
                let (removals, got) = find_removals(layer, self.options.limits)?;
                self.verify(&got)?;
                found.insert(removals)
            };
            lower.remove(removals).map_err(LayerError::write(b""))?;
            Ok(lower)
        };
        let upper = UpperLayer::new(&partial.files(), spare, self.options, &mut below);
        let upper = upper.map_err(UnpackError::store("open", &partial.files()))?;
        let report = || {
            self.progress.at(&name, consumed.load(Ordering::Relaxed));
            if self.scheduler.is_stopped() { Err(LayerError::Stopped) } else { Ok(()) }
        };
        let read = |input: LayerInput<'_>| unpack(input, upper, self.options.limits, &report);
        let (finished, got) = read_hashed(layer, self.options.limits, &consumed, read)?;
        self.verify(&got)?;
        let name_in_store = if finished.depends_on_lower { self.chain_name } else { self.diff.hex() };
        let held = partial.complete(name_in_store, LayerRecord::new(finished))?;
        self.progress.finished(&name);
        Ok(held)
    }

    fn verify(&self, got: &Digest) -> Result<(), LayerError> {
        if got == self.diff { Ok(()) } else { Err(LayerError::WrongContents { got: got.to_string() }) }
    }

    fn to_unpack_error(&self, error: LayerError) -> UnpackError {
        let number = self.index + 1;
        let digest = self.image.layers.get(self.index).map_or("", |layer| layer.digest.as_str());
        let digest = digest.chars().take(19).collect();
        match error {
            LayerError::Tar(error) => self.image.layer_error(self.index, error.to_string()).into(),
            LayerError::Write { entry, source } => {
                UnpackError::Entry { number, digest, entry: printable(&entry), source }
            }
            LayerError::WrongContents { got } => {
                UnpackError::WrongContents { number, digest, wanted: self.diff.to_string(), got }
            }
            LayerError::Store(error) => error,
            LayerError::Stopped => {
                self.image.layer_error(self.index, "unpacking was stopped".to_owned()).into()
            }
        }
    }
}

impl From<Stopped> for LayerError {
    fn from(_: Stopped) -> Self {
        LayerError::Stopped
    }
}

/// Looks a layer up under both of its names.
pub(in crate::unpack) fn find(
    layer_dir: &LayerDir,
    diff: &Digest,
    chain_name: &str,
) -> Result<Option<LockedLayer>, UnpackError> {
    match layer_dir.take(diff.hex())? {
        Some(held) => Ok(Some(held)),
        None => layer_dir.take(chain_name),
    }
}

/// Unpacks a layer, reading it to the end.
pub(in crate::unpack) fn unpack(
    input: LayerInput<'_>,
    mut upper: UpperLayer<'_>,
    limits: LayerLimits,
    report: &dyn Fn() -> Result<(), LayerError>,
) -> Result<FinishedLayer, LayerError> {
    let mut reader = TarReader::with_details(input);
    let (mut count, mut reported) = (0_u64, 0);
    while let Some(header) = reader.next_below(limits.entries)? {
        count += 1;
        let details = reader.take_details();
        upper.put(&header, details, &mut reader)?;
        if upper.counters.bytes / REPORT != reported || count.is_multiple_of(1024) {
            reported = upper.counters.bytes / REPORT;
            report()?;
        }
    }
    // Bytes after the last entry are part of the digest.
    reader.drain().map_err(TarError::from)?;
    upper.finish()
}

/// Reads a layer only for its whiteouts. Returns its digest as well.
pub(in crate::unpack) fn find_removals(
    layer: StoredLayer<'_>,
    limits: LayerLimits,
) -> Result<(Vec<Removal>, Digest), LayerError> {
    read_hashed(layer, limits, &AtomicU64::new(0), |input| {
        let mut reader = TarReader::with_details(input);
        let mut removals = Vec::new();
        while let Some(header) = reader.next_below(limits.entries)? {
            let path = path_of(&header, &mut reader.take_details());
            removals.extend(removal(&path)?.0);
        }
        reader.drain().map_err(TarError::from)?;
        Ok(removals)
    })
}
