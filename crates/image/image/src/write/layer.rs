//! Writes layers into a blob store.

use cudock_base::bug::PartsMut;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use cudock_base::{Digest, FileError, ScratchDir};
use cudock_http::BlobStore;

use super::compress::{BlockWriter, Compression};
use super::error::WriteError;
use super::tar::{BLOCK, FileContent, LayerEntry, padding};
use crate::kind::FileKind;

/// The file that a layer is written to.
const LAYER: &str = "layer";

/// A layer in a blob store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerBlob {
    pub media_type: String,
    pub digest: Digest,
    /// The stored size.
    pub size: u64,
    /// The digest of the uncompressed tar file.
    pub diff_id: Digest,
    /// The size of the uncompressed tar file.
    pub unpacked: u64,
    pub path: PathBuf,
}

/// Writes one layer, entry by entry. The same entries give the same bytes.
pub struct LayerWriter {
    out: BlockWriter,
    store: BlobStore,
    compression: Compression,
    scratch: ScratchDir,
}

impl LayerWriter {
    pub fn new(store: &BlobStore, compression: Compression) -> Result<Self, WriteError> {
        let scratch = ScratchDir::new(&store.directory().join("scratch"))?;
        let path = scratch.path().join(LAYER);
        let file = File::create_new(&path).map_err(FileError::at("write", &path))?;
        let out = BlockWriter::new(compression, file);
        Ok(Self { out, store: store.clone(), compression, scratch })
    }

    /// Appends an entry.
    pub fn append(&mut self, entry: &LayerEntry) -> Result<(), WriteError> {
        match &entry.kind {
            FileKind::File(FileContent::Bytes(bytes)) => {
                let size = bytes.len() as u64;
                self.raw(&[&entry.header(size)?, bytes, padding(size)])
            }
            FileKind::File(FileContent::File(path)) => {
                let unread = |source| WriteError::Source { path: path.clone(), source };
                let mut file = File::open(path).map_err(unread)?;
                let size = file.metadata().map_err(unread)?.len();
                self.raw(&[&entry.header(size)?])?;
                self.copy(&mut file, size).map_err(|error| match error {
                    CopyError::Read(error) => unread(error),
                    CopyError::Write(error) => self.failed(error),
                })?;
                self.raw(&[padding(size)])
            }
            _ => self.raw(&[&entry.header(0)?]),
        }
    }

    /// Appends bytes of a tar file as they are.
    pub(crate) fn raw(&mut self, parts: &[&[u8]]) -> Result<(), WriteError> {
        let written = parts.iter().try_for_each(|part| self.out.write_all(part));
        written.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> WriteError {
        FileError::at("write", &self.scratch.path().join(LAYER))(error).into()
    }

    fn copy(&mut self, from: &mut File, size: u64) -> Result<(), CopyError> {
        let mut buffer = vec![0; 256 << 10];
        let mut left = size;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let part = buffer.part_mut(..wanted);
            from.read_exact(part).map_err(CopyError::Read)?;
            self.out.write_all(part).map_err(CopyError::Write)?;
            left -= part.len() as u64;
        }
        Ok(())
    }

    /// Ends the tar file, and moves it into the store.
    pub fn finish(mut self) -> Result<LayerBlob, WriteError> {
        self.raw(&[&[0; 2 * BLOCK]])?;
        self.finish_raw()
    }

    /// Moves a tar file that has its end into the store.
    pub(crate) fn finish_raw(self) -> Result<LayerBlob, WriteError> {
        let path = self.scratch.path().join(LAYER);
        let finished = self.out.finish().and_then(|finished| {
            File::open(&path)?.sync_all()?;
            Ok(finished)
        });
        let finished = finished.map_err(FileError::at("write", &path))?;
        let path = self.store.adopt(&path, &finished.digest)?;
        Ok(LayerBlob {
            media_type: self.compression.media_type().to_owned(),
            digest: finished.digest,
            size: finished.size,
            diff_id: finished.diff_id,
            unpacked: finished.unpacked,
            path,
        })
    }
}

enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

/// Writes a layer of these entries in the order of their paths, with the directories above them.
pub fn write_layer(
    store: &BlobStore,
    compression: Compression,
    mut entries: Vec<LayerEntry>,
) -> Result<LayerBlob, WriteError> {
    let known: BTreeSet<String> = entries.iter().map(|entry| entry.path.clone()).collect();
    let mut parents = BTreeSet::new();
    for path in &known {
        let ends = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        parents.extend(ends.filter(|parent| !known.contains(*parent)).map(str::to_owned));
    }
    entries.extend(parents.into_iter().map(|path| LayerEntry::new(path, FileKind::Directory, 0o755)));
    // A hard link follows the file that it names, whatever their paths.
    entries.sort_by(|a, b| {
        let key = |entry: &LayerEntry| matches!(entry.kind, FileKind::Other(_));
        (key(a), &a.path).cmp(&(key(b), &b.path))
    });
    let mut layer = LayerWriter::new(store, compression)?;
    let mut seen = BTreeSet::new();
    for entry in &entries {
        if !seen.insert(entry.path.as_str()) {
            let reason = "the path occurs twice".to_owned();
            return Err(WriteError::Entry { path: entry.path.clone(), reason });
        }
        layer.append(entry)?;
    }
    layer.finish()
}
