//! One layer, from its bytes to its place on the shelf.

use std::sync::atomic::{AtomicU64, Ordering};

use cudock_base::Digest;
use cudock_http::Progress;
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::board::{Board, Stopped, Turn};
use super::entries::{path_of, removal};
use super::error::{LayerError, UnpackError, shown};
use super::finish::Finished;
use super::lower::{Lower, Removal};
use super::options::StoreOptions;
use super::record::Record;
use super::shelf::{Held, Partial, Shelf};
use super::stream::hashed;
use super::upper::Upper;
use crate::layer::{Input, Limits, TarError, TarReader};
use crate::open::Image;

/// Bytes between two reports.
const REPORT: u64 = 4 << 20;

/// A layer to unpack.
pub(super) struct Job<'i> {
    pub(super) image: &'i Image,
    pub(super) shelf: &'i Shelf,
    pub(super) options: StoreOptions,
    pub(super) board: &'i Board,
    pub(super) progress: &'i dyn Progress,
    pub(super) index: usize,
    pub(super) diff: &'i Digest,
    /// The name of this layer above just these others.
    pub(super) chained: &'i str,
    /// The lowest layer with the same contents, if that is another.
    pub(super) twin: Option<usize>,
}

impl Job<'_> {
    /// Unpacks the layer and tells the board.
    pub(super) fn run(&self) {
        match self.unpacked() {
            Ok(held) => self.board.done(self.index, held),
            Err(LayerError::Stopped) => {}
            Err(error) => self.board.failed(self.told(error)),
        }
    }

    fn unpacked(&self) -> Result<Held, LayerError> {
        if let Some(twin) = self.twin {
            self.board.layer(twin)?;
        }
        let waiting = || self.progress.waiting(&self.diff.to_string());
        let partial = loop {
            if let Some(held) = find(self.shelf, self.diff, self.chained)? {
                return Ok(held);
            }
            if let Some(partial) = self.shelf.begin(self.chained, &waiting)? {
                break partial;
            }
        };
        // Done by another process while we waited for it, perhaps under the other name.
        if let Some(held) = find(self.shelf, self.diff, self.chained)? {
            return Ok(held);
        }
        let layer = self.image.layers.get(self.index).ok_or(LayerError::Stopped)?;
        let bytes = self.board.fetch(|| layer.bytes())?.map_err(UnpackError::from)?;
        let mut turn = self.board.turn(self.index, layer.size)?;
        self.written(&bytes, partial, &mut turn)
    }

    fn written(&self, bytes: &[u8], partial: Partial, turn: &mut Turn<'_>) -> Result<Held, LayerError> {
        let name = self.diff.to_string();
        self.progress.started(&name, Some(bytes.len() as u64), 0);
        let taken = AtomicU64::new(0);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let spare = openat(CWD, partial.spare(), flags, Mode::empty());
        let spare = spare.map_err(|error| UnpackError::store("open", partial.spare())(error.into()))?;
        let mut below = |removals: Option<&[Removal]>| {
            let layers = turn.below()?;
            let seen = layers.iter().rev().scan(false, |hidden, layer| {
                let seen = !std::mem::replace(hidden, *hidden || layer.record.hides_all);
                seen.then_some(layer.path.as_path())
            });
            let mut lower = Lower::open(seen, self.options)
                .map_err(|error| LayerError::Store(UnpackError::store("read", self.shelf.folder())(error)))?;
            let found;
            let removals = if let Some(removals) = removals {
                removals
            } else {
                found = find_removals(bytes, self.options.limits)?;
                &found
            };
            lower.remove(removals).map_err(LayerError::at(b""))?;
            Ok(lower)
        };
        let upper = Upper::new(&partial.files(), spare, self.options, &mut below);
        let upper = upper.map_err(UnpackError::store("open", partial.files()))?;
        let report = || {
            self.progress.at(&name, taken.load(Ordering::Relaxed));
            if self.board.is_stopped() { Err(LayerError::Stopped) } else { Ok(()) }
        };
        let read = |input: Input<'_>| unpack(input, upper, self.options.limits, &report);
        let (finished, got) = hashed(bytes, self.options.limits, &taken, read)?;
        if got != self.diff.hex() {
            return Err(LayerError::WrongContents { got: format!("sha256:{got}") });
        }
        let name_on_shelf = if finished.depends { self.chained } else { self.diff.hex() };
        let held = partial.complete(name_on_shelf, Record::new(finished))?;
        self.progress.finished(&name);
        Ok(held)
    }

    fn told(&self, error: LayerError) -> UnpackError {
        let number = self.index + 1;
        let digest = self.image.layers.get(self.index).map_or("", |layer| layer.digest.as_str());
        let digest = digest.chars().take(19).collect();
        match error {
            LayerError::Tar(error) => self.image.wrong_layer(self.index, error.to_string()).into(),
            LayerError::Write { entry, source } => {
                UnpackError::Entry { number, digest, entry: shown(&entry), source }
            }
            LayerError::WrongContents { got } => {
                UnpackError::WrongContents { number, digest, wanted: self.diff.to_string(), got }
            }
            LayerError::Store(error) => error,
            LayerError::Stopped => {
                self.image.wrong_layer(self.index, "unpacking was stopped".to_owned()).into()
            }
        }
    }
}

impl From<Stopped> for LayerError {
    fn from(_: Stopped) -> Self {
        LayerError::Stopped
    }
}

/// A layer that is on the shelf under either of its names.
pub(super) fn find(shelf: &Shelf, diff: &Digest, chained: &str) -> Result<Option<Held>, UnpackError> {
    match shelf.take(diff.hex())? {
        Some(held) => Ok(Some(held)),
        None => shelf.take(chained),
    }
}

/// Makes files of a layer, to its end.
pub(super) fn unpack(
    input: Input<'_>,
    mut upper: Upper<'_>,
    limits: Limits,
    report: &dyn Fn() -> Result<(), LayerError>,
) -> Result<Finished, LayerError> {
    let mut reader = TarReader::with_details(input);
    let (mut count, mut reported) = (0_u64, 0);
    while let Some(header) = reader.next()? {
        count += 1;
        if count > limits.entries {
            return Err(LayerError::refused(format!("more than {} entries", limits.entries)));
        }
        let details = reader.take_details();
        upper.put(&header, details, &mut reader)?;
        if upper.tally.bytes / REPORT != reported || count.is_multiple_of(1024) {
            reported = upper.tally.bytes / REPORT;
            report()?;
        }
    }
    // What follows the last entry belongs to what is hashed.
    reader.drain().map_err(TarError::from)?;
    upper.finish()
}

/// All that a layer removes, looked for beforehand.
pub(super) fn find_removals(bytes: &[u8], limits: Limits) -> Result<Vec<Removal>, LayerError> {
    let input = Input::of(bytes, limits).map_err(TarError::from)?;
    let mut reader = TarReader::with_details(input);
    let mut removals = Vec::new();
    let mut count = 0_u64;
    while let Some(header) = reader.next()? {
        count += 1;
        if count > limits.entries {
            return Err(LayerError::refused(format!("more than {} entries", limits.entries)));
        }
        let path = path_of(&header, &mut reader.take_details());
        removals.extend(removal(&path)?.0);
    }
    Ok(removals)
}
