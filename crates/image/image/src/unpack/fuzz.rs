//! Fuzz entry point.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::error::LayerError;
use super::layer::job::{find_removals, unpack};
use super::layer::lower::{LowerLayers, Removal};
use super::layer::stream::{StoredLayer, read_hashed};
use super::layer::upper::UpperLayer;
use super::options::{Ownership, StoreOptions, WhiteoutForm};
use crate::layer::LayerLimits;

/// Unpacks bytes as three layers: all of them, and each half.
///
/// # Panics
/// If a file appears outside of the directory of the layer.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let Ok(scratch) = cudock_base::ScratchDir::new(&std::env::temp_dir()) else { return };
    let limits = LayerLimits { entries: 2_000, unpacked: 4 << 20, ratio: 400 };
    let options = StoreOptions { whiteouts: WhiteoutForm::User, ownership: Ownership::CurrentUser, limits };
    let (lower, upper) = bytes.split_at(bytes.len() / 2);
    let mut below: Vec<std::path::PathBuf> = Vec::new();
    for (number, layer) in [bytes, lower, upper].into_iter().enumerate() {
        let directory = scratch.path().join(number.to_string());
        if one(layer, &directory, &below, options).is_ok() {
            below.insert(0, directory.join("fs"));
        }
        let entries = |path: &Path| fs::read_dir(path).map_or(0, Iterator::count);
        assert!(entries(scratch.path()) == number + 1 && entries(&directory) == 2, "a file escaped");
    }
}

fn one(
    bytes: &[u8],
    directory: &Path,
    below: &[std::path::PathBuf],
    options: StoreOptions,
) -> Result<(), LayerError> {
    let created =
        fs::create_dir_all(directory.join("fs")).and_then(|()| fs::create_dir(directory.join("spare")));
    let spare = created.and_then(|()| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, directory.join("spare"), flags, Mode::empty()).map_err(io::Error::from)
    });
    let spare = spare.map_err(LayerError::write(b""))?;
    let layer = StoredLayer { bytes, is_own: false };
    let mut lower = |removals: Option<&[Removal]>| {
        let mut lower = LowerLayers::open(below.iter().map(std::path::PathBuf::as_path), options)
            .map_err(LayerError::write(b""))?;
        let found = match removals {
            Some(removals) => removals.to_vec(),
            None => find_removals(layer, options.limits)?.0,
        };
        lower.remove(&found).map_err(LayerError::write(b""))?;
        Ok(lower)
    };
    let upper =
        UpperLayer::new(&directory.join("fs"), spare, options, &mut lower).map_err(LayerError::write(b""))?;
    let read = |input: crate::layer::LayerInput<'_>| unpack(input, upper, options.limits, &|| Ok(()));
    read_hashed(layer, options.limits, &AtomicU64::new(0), read).map(|_| ())
}
