//! Writes the file system of an image as squashfs, which enroot and apptainer start without unpacking it.
//!
//! Variables and entry point are not a part of a file system. Extended attributes and devices are left out: the first are not
//! supported by `backhand`, the second come from the container runtime. Hard links become files that share their blocks.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::Range;
use std::path::Path;

use backhand::compression::Compressor;
use backhand::{FilesystemCompressor, FilesystemWriter, NodeHeader};

use super::blob::BlobBytes;
use super::bundle::Bundle;
use super::error::WriteError;
use super::layout::{WriteFailed, replace_file};
use super::options::{WriteOptions, Written};
use super::rewrite::plain;
use crate::kind::FileKind;
use crate::layer::{EntryDetails, LayerInput, LayerLimits, TarOnly, TarReader, change_of};
use crate::tree::{Special, Tree};

/// The type of a FIFO in a tar header, and those of devices.
const FIFO: u8 = b'6';
const DEVICES: [u8; 2] = [b'3', b'4'];

/// A regular file: its header, the layer that has its bytes, and where.
#[derive(Clone)]
struct StoredFile {
    header: NodeHeader,
    layer: usize,
    range: Range<usize>,
}

/// Header and type of a node other than a regular file, which the tree does not keep.
struct OtherNode {
    header: NodeHeader,
    type_flag: u8,
}

/// Writes the image of one platform.
pub(super) fn write(bundle: &Bundle, file: &Path, options: &WriteOptions) -> Result<Written, WriteError> {
    let (manifest, document) = bundle.select(options.platform.as_ref())?;
    let mut layers: Vec<BlobBytes> = Vec::new();
    for layer in document.layers.iter().flatten() {
        let blob = bundle.blob(&layer.digest);
        let blob = blob.ok_or_else(|| WriteError::damaged(&layer.digest, "not found"))?;
        layers.push(plain(&layer.digest, blob.verified()?, &options.scratch)?);
    }
    let mut tree: Tree<StoredFile> = Tree::default();
    let mut others = BTreeMap::new();
    for (index, bytes) in layers.iter().enumerate() {
        let hostile =
            |reason: String| WriteError::damaged(&manifest.digest, format!("layer {index}: {reason}"));
        merge(bytes, index, &mut tree, &mut others).map_err(hostile)?;
    }
    replace_file(file, |out| {
        let failed = |error: backhand::BackhandError| {
            WriteFailed::Content(WriteError::Unsupported {
                destination: format!("squashfs:{}", file.display()),
                reason: error.to_string(),
            })
        };
        let mut writer = squashfs(&tree, &others, &layers).map_err(failed)?;
        let (_, bytes_sent) = writer.write(out).map_err(failed)?;
        Ok(Written { bytes_sent, ..Written::default() })
    })
}

/// Applies a layer to the tree, and notes what the tree has no place for.
fn merge(
    bytes: &[u8],
    layer: usize,
    tree: &mut Tree<StoredFile>,
    others: &mut BTreeMap<String, OtherNode>,
) -> Result<(), String> {
    let mut reader = TarReader::with_details(LayerInput::Slice { bytes, at: 0 });
    let (mut changes, mut noted) = (Vec::new(), Vec::new());
    while let Some(header) =
        reader.next_below(LayerLimits::default().entries).map_err(|error| error.to_string())?
    {
        let details = reader.take_details();
        let path = header.path.clone();
        let node = node_header(header.mode, &details);
        let is_special = header.kind == FileKind::Other(TarOnly::Special);
        if is_special && details.type_flag != FIFO && !DEVICES.contains(&details.type_flag) {
            return Err(format!("`{path}` is of a kind that squashfs does not have, such as a sparse file"));
        }
        if is_special || matches!(header.kind, FileKind::Directory | FileKind::Symlink(_)) {
            noted.push((path, OtherNode { header: node, type_flag: details.type_flag }));
        }
        let start = reader.position();
        let end = usize::try_from(header.size()).ok().and_then(|size| start.checked_add(size));
        let range = start..end.filter(|end| *end <= bytes.len()).unwrap_or(start);
        let change = change_of(header, |_| Ok(Some(StoredFile { header: node, layer, range })));
        changes.extend(change.map_err(|error| error.to_string())?);
    }
    tree.apply(changes)?;
    for (path, node) in noted {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let real = match parent {
            "" => Some(name.to_owned()),
            parent => tree.resolve(parent).map(|(real, _)| format!("{real}/{name}")),
        };
        others.extend(real.map(|real| (real, node)));
    }
    Ok(())
}

fn node_header(mode: u32, details: &EntryDetails) -> NodeHeader {
    let small = |number: u64| u32::try_from(number).unwrap_or(0);
    NodeHeader {
        permissions: u16::try_from(mode & 0o7777).unwrap_or(0o755),
        uid: small(details.uid),
        gid: small(details.gid),
        mtime: u32::try_from(details.mtime.seconds).unwrap_or(0),
    }
}

fn squashfs<'l>(
    tree: &Tree<StoredFile>,
    others: &BTreeMap<String, OtherNode>,
    layers: &'l [BlobBytes],
) -> Result<FilesystemWriter<'l, 'l, 'l>, backhand::BackhandError> {
    let mut writer = FilesystemWriter::default();
    writer.set_time(0);
    // The only one that every kernel with squashfs reads.
    writer.set_compressor(FilesystemCompressor::new(Compressor::Gzip, None)?);
    writer.set_root_mode(0o755);
    for (path, node) in tree.iter() {
        let other = others.get(path);
        let missing = NodeHeader { permissions: 0o755, ..NodeHeader::default() };
        let header = other.map_or(missing, |other| other.header);
        match &node.kind {
            FileKind::Directory => writer.push_dir(path, header)?,
            FileKind::Symlink(target) => writer.push_symlink(target.as_str(), path, header)?,
            FileKind::Other(Special) if other.is_some_and(|other| other.type_flag == FIFO) => {
                writer.push_fifo(path, header)?;
            }
            FileKind::Other(Special) => {}
            FileKind::File(file) => {
                let Some(file) = &file.kept else { continue };
                let bytes = layers.get(file.layer).and_then(|bytes| bytes.get(file.range.clone()));
                writer.push_file(Cursor::new(bytes.unwrap_or_default()), path, file.header)?;
            }
        }
    }
    Ok(writer)
}
