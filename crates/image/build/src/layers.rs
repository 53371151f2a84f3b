//! Groups files into layers, and writes them: those that change least first, large groups cut so that pulls run in parallel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use cudock_base::{Digest, FileError, cores, files, try_parallel};
use cudock_facts::version::Capability;
use cudock_http::BlobStore;
use cudock_image::FileKind;
use cudock_image::write::{Compression, FileContent, HardLink, LayerBlob, LayerEntry, LayerWriter};
use cudock_lock::LayerGroup;
use serde::{Deserialize, Serialize};

use crate::error::BuildError;
use crate::files::file::{FileSource, ImageFile};
use crate::plan::ImagePlan;

/// A group of more bytes is cut.
const CUT: u64 = 384 << 20;
/// Engines pull three layers at once by default; more of them gain nothing.
const MAX_PARTS: u64 = 4;
/// Raised when the same files give other bytes.
const FORMAT: u32 = 2;
/// Writers at once: each may hold a library of half a gigabyte.
const MAX_WRITERS: usize = 4;

/// The files of one layer, sorted by path.
#[derive(Debug)]
pub struct LayerPlan<'p> {
    pub group: LayerGroup,
    pub files: Vec<&'p ImageFile>,
}

/// Groups the files of an image into layers. Parts of a group have about the same size.
pub fn group(plan: &ImagePlan) -> Vec<LayerPlan<'_>> {
    let mut groups: BTreeMap<LayerGroup, Vec<&ImageFile>> = BTreeMap::new();
    for file in plan.files.values() {
        groups.entry(file.origin.group).or_default().push(file);
    }
    groups.into_iter().flat_map(|(group, files)| cut(group, files)).collect()
}

fn cut(group: LayerGroup, mut files: Vec<&ImageFile>) -> Vec<LayerPlan<'_>> {
    let total: u64 = files.iter().map(|file| file.size()).sum();
    let count = usize::try_from(total.div_ceil(CUT).clamp(1, MAX_PARTS)).unwrap_or(1);
    // The largest first, each into the part that has the least.
    files.sort_by(|one, other| other.size().cmp(&one.size()).then_with(|| one.path.cmp(&other.path)));
    let mut parts: Vec<(u64, Vec<&ImageFile>)> = vec![(0, Vec::new()); count];
    for file in files {
        if let Some((size, part)) = parts.iter_mut().min_by_key(|(size, _)| *size) {
            *size += file.size();
            part.push(file);
        }
    }
    let mut layers = Vec::new();
    for (_, mut files) in parts {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        if !files.is_empty() {
            layers.push(LayerPlan { group, files });
        }
    }
    layers
}

/// A layer that was written, now or before.
#[derive(Debug, Clone)]
pub struct WrittenLayer {
    pub group: LayerGroup,
    pub blob: LayerBlob,
    pub files: usize,
    /// The bytes of each file that became smaller, by path.
    pub slimmed: BTreeMap<String, u64>,
    /// Whether it was in the cache.
    pub cached: bool,
}

/// How layers are written.
#[derive(Debug)]
pub struct LayerJob<'a> {
    pub store: &'a BlobStore,
    pub compression: Compression,
    /// The time of all files, in seconds since 1970.
    pub time: u64,
    /// Compute capabilities of the GPUs whose code is kept; all if empty.
    pub targets: &'a [Capability],
}

/// A written layer as the cache remembers it.
#[derive(Serialize, Deserialize)]
struct LayerRecord {
    media_type: String,
    digest: Digest,
    size: u64,
    diff_id: Digest,
    unpacked: u64,
    slimmed: BTreeMap<String, u64>,
}

impl LayerJob<'_> {
    /// Writes all layers, several at once. The result does not depend on how many.
    pub fn write(&self, plan: &ImagePlan, layers: &[LayerPlan<'_>]) -> Result<Vec<WrittenLayer>, BuildError> {
        try_parallel(layers, cores().min(MAX_WRITERS), |layer| self.layer(plan, layer))
    }

    fn layer(&self, plan: &ImagePlan, layer: &LayerPlan<'_>) -> Result<WrittenLayer, BuildError> {
        let record_path = self.record_path(layer);
        let written = |record: LayerRecord, path: PathBuf, cached: bool| WrittenLayer {
            group: layer.group,
            files: layer.files.len(),
            slimmed: record.slimmed,
            cached,
            blob: LayerBlob {
                media_type: record.media_type,
                digest: record.digest,
                size: record.size,
                diff_id: record.diff_id,
                unpacked: record.unpacked,
                path,
            },
        };
        let known =
            fs::read(&record_path).ok().and_then(|text| serde_json::from_slice::<LayerRecord>(&text).ok());
        if let Some(record) = known
            && let Some(path) = self.store.path_of(&record.digest)
        {
            return Ok(written(record, path, true));
        }
        let mut writer = LayerWriter::new(self.store, self.compression)?;
        let mut slimmed = BTreeMap::new();
        for directory in directories(plan, layer) {
            writer.append(&self.entry(&directory.0, FileKind::Directory, directory.1))?;
        }
        for file in layer.files.iter().filter(|file| !file.kind.is_directory()) {
            let kind = file.kind.with_content(|source| match source {
                FileSource::Bytes(bytes) => FileContent::Bytes(bytes.clone()),
                FileSource::Disk { path, .. } => match self.slim(file) {
                    Some(bytes) => {
                        slimmed.insert(file.path.clone(), bytes.len() as u64);
                        FileContent::Bytes(bytes)
                    }
                    None => FileContent::File(path.clone()),
                },
            });
            writer.append(&self.entry(&file.path, kind, file.mode))?;
        }
        let blob = writer.finish()?;
        let record = LayerRecord {
            media_type: blob.media_type,
            digest: blob.digest,
            size: blob.size,
            diff_id: blob.diff_id,
            unpacked: blob.unpacked,
            slimmed,
        };
        let text = serde_json::to_vec(&record).unwrap_or_default();
        if let Some(directory) = record_path.parent() {
            fs::create_dir_all(directory).map_err(FileError::at("create directory", directory))?;
        }
        files::write_atomically(&record_path, &text).map_err(FileError::at("write", &record_path))?;
        Ok(written(record, blob.path, false))
    }

    fn entry(&self, path: &str, kind: FileKind<FileContent, HardLink>, mode: u32) -> LayerEntry {
        LayerEntry { mtime: self.time, ..LayerEntry::new(path, kind, mode) }
    }

    /// The content of a library without the code for other GPUs; none if there is nothing to
    /// remove, or if the result could not be verified.
    fn slim(&self, file: &ImageFile) -> Option<Vec<u8>> {
        let FileKind::File(FileSource::Disk { path, size, .. }) = &file.kind else { return None };
        if self.targets.is_empty() || *size < 4096 {
            return None;
        }
        let bytes = cudock_mmap::map(path).ok()?;
        if !bytes.starts_with(b"\x7fELF") {
            return None;
        }
        let binary = cudock_fatbin::read(&bytes).ok()?;
        let plan = cudock_fatbin::plan(&binary, &bytes, self.targets, &[]);
        if plan.patches.is_empty() {
            return None;
        }
        let attempts =
            [true, false].into_iter().map(|compact| cudock_fatbin::in_memory(&bytes, &plan, compact));
        attempts.flatten().next()
    }

    /// The path of a layer's record in the cache: it depends on everything that decides the layer's bytes.
    fn record_path(&self, layer: &LayerPlan<'_>) -> PathBuf {
        let targets: Vec<String> = self.targets.iter().map(ToString::to_string).collect();
        let mut key = format!(
            "{FORMAT} {} {:?} {} {}\n",
            env!("CARGO_PKG_VERSION"),
            self.compression,
            self.time,
            targets.join(",")
        );
        for file in &layer.files {
            let content = match &file.kind {
                FileKind::Directory => "/".to_owned(),
                FileKind::Symlink(target) => format!("-> {target}"),
                FileKind::File(FileSource::Bytes(bytes)) => Digest::sha256_of(bytes).to_string(),
                FileKind::File(FileSource::Disk { identity, .. }) => identity.clone(),
                FileKind::Other(other) => match *other {},
            };
            key.extend([format!("{:o} ", file.mode), file.path.clone(), format!(" {content}\n")]);
        }
        let name = format!("{}.json", Digest::sha256_of(key.as_bytes()).hex());
        self.store.directory().join("built-layers").join(name)
    }
}

/// The directories of a layer with their modes: its own, and those above its files.
fn directories(plan: &ImagePlan, layer: &LayerPlan<'_>) -> BTreeSet<(String, u32)> {
    let mode = |path: &str| {
        let known = plan.files.get(path).filter(|file| file.kind.is_directory());
        known.map_or(0o755, |file| file.mode)
    };
    let mut all = BTreeSet::new();
    for file in &layer.files {
        if file.kind.is_directory() {
            all.insert((file.path.clone(), file.mode));
        }
        for (at, _) in file.path.match_indices('/') {
            let parent = file.path.get(..at).unwrap_or_default();
            all.insert((parent.to_owned(), mode(parent)));
        }
    }
    all
}
