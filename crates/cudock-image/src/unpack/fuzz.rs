//! What the fuzzer calls.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::error::LayerError;
use super::job::{find_removals, unpack};
use super::lower::{Lower, Removal};
use super::options::{Ownership, StoreOptions, WhiteoutForm};
use super::stream::hashed;
use super::upper::Upper;
use crate::layer::Limits;

/// Unpacks bytes as three layers: all of them, and each half. Panics if anything appears where nothing belongs.
///
/// # Panics
/// Where an archive got out of its folder.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let Ok(scratch) = tempfile::tempdir() else { return };
    let limits = Limits { entries: 2_000, unpacked: 4 << 20, ratio: 400 };
    let options =
        StoreOptions { whiteouts: WhiteoutForm::User, ownership: Ownership::Ours, devices: false, limits };
    let (lower, upper) = bytes.split_at(bytes.len() / 2);
    let mut below: Vec<std::path::PathBuf> = Vec::new();
    for (number, layer) in [bytes, lower, upper].into_iter().enumerate() {
        let folder = scratch.path().join(number.to_string());
        if one(layer, &folder, &below, options).is_ok() {
            below.insert(0, folder.join("fs"));
        }
        let entries = |path: &Path| fs::read_dir(path).map_or(0, Iterator::count);
        assert!(entries(scratch.path()) == number + 1 && entries(&folder) == 2, "something got out");
    }
}

fn one(
    bytes: &[u8],
    folder: &Path,
    below: &[std::path::PathBuf],
    options: StoreOptions,
) -> Result<(), LayerError> {
    let wrong = LayerError::at(b"");
    let made = fs::create_dir_all(folder.join("fs")).and_then(|()| fs::create_dir(folder.join("spare")));
    let spare = made.and_then(|()| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, folder.join("spare"), flags, Mode::empty()).map_err(io::Error::from)
    });
    let spare = spare.map_err(wrong)?;
    let mut lower = |removals: Option<&[Removal]>| {
        let mut lower = Lower::open(below.iter().map(std::path::PathBuf::as_path), options)
            .map_err(LayerError::at(b""))?;
        let found = match removals {
            Some(removals) => removals.to_vec(),
            None => find_removals(bytes, options.limits)?,
        };
        lower.remove(&found).map_err(LayerError::at(b""))?;
        Ok(lower)
    };
    let upper = Upper::new(&folder.join("fs"), spare, options, &mut lower).map_err(LayerError::at(b""))?;
    let read = |input: crate::layer::Input<'_>| unpack(input, upper, options.limits, &|| Ok(()));
    hashed(bytes, options.limits, &AtomicU64::new(0), read).map(|_| ())
}
